// The low-rank Gaussian per datum.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "hone/base/error.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/latent/minibatch_family.hpp"
#include "hone/tensor/triangular.hpp"
#include "tests/support/differences.hpp"

namespace hone::test {
namespace {

constexpr int latent = 3, count = 7;

std::shared_ptr<const AmortizedFamily> low_rank(int rank) { return std::make_shared<LowRankGaussian>(rank); }

// The textbook's formulas for a dense covariance.
class Dense {
 public:
  Dense(const AmortizedParameters& q, int c, int rank) : mean_(q.location.column(c)), covariance_(latent, latent) {
    for (int i = 0; i < latent; ++i)
      for (int j = 0; j < latent; ++j) {
        covariance_(i, j) = i == j ? square(q.scale(i, c)) : 0;
        for (int k = 1; k <= rank; ++k) covariance_(i, j) += q.scale(k * latent + i, c) * q.scale(k * latent + j, c);
      }
    lower_ = cholesky(covariance_);
  }
  double covariance(int i, int j) const { return covariance_(i, j); }
  double log_normalizer() const {
    double sum = 0.5 * latent * log_two_pi;
    for (std::size_t i = 0; i < latent; ++i) sum += std::log(lower_[packed(i, i)]);
    return sum;
  }
  double log_density(std::span<const double> z) const {
    std::vector<double> u(latent);
    for (int i = 0; i < latent; ++i) u[i] = z[i] - mean_[i];
    solve_lower(lower_, u, u);
    return -log_normalizer() - 0.5 * std::inner_product(u.begin(), u.end(), u.begin(), 0.0);
  }

 private:
  std::span<const double> mean_;
  Matrix<double> covariance_;
  std::vector<double> lower_;
};

// Widths from a thousandth of the factors to far above them.
TEST(LowRankGaussian, IsTheDenseNormal) {
  for (const int rank : {1, 2, latent})
    for (const double width : {1e-3, 0.1, 1.0, 30.0}) {
      const LowRankGaussian family(rank);
      const AmortizedShape shape = family.shape(latent);
      Matrix<double> location(latent, count), scale(shape.scale, count), z(latent, count), gradient(latent, count),
          mean(latent, count), sd(latent, count);
      const PhiloxSource random(17);
      random.normals({Purpose::start}, location.view().flat());
      random.normals({Purpose::start, 1}, scale.view().flat());
      random.normals({Purpose::start, 2}, z.view().flat());
      for (int c = 0; c < count; ++c)
        for (int i = 0; i < latent; ++i) scale(i, c) = width * (0.5 + std::abs(scale(i, c)));
      const AmortizedParameters q{location, scale};
      std::vector<double> value(count), normalizer(count);
      family.log_density(q, z, Want::both, value, gradient);
      family.log_normalizer(q, normalizer);
      family.moments(q, mean, sd);
      for (int c = 0; c < count; ++c) {
        const Dense dense(q, c, rank);
        const double expected = dense.log_density(z.column(c));
        EXPECT_NEAR(value[c], expected, 1e-8 * (1 + std::abs(expected))) << rank << " " << width;
        EXPECT_NEAR(normalizer[c], dense.log_normalizer(), 1e-9);
        for (int i = 0; i < latent; ++i) {
          const double slope = derivative_in(
              z(i, c), [&] { return dense.log_density(z.column(c)); }, 1e-3);
          EXPECT_NEAR(gradient(i, c), slope, 1e-6 * (1 + std::abs(slope))) << rank << " " << width;
          EXPECT_EQ(mean(i, c), location(i, c));
          EXPECT_NEAR(sd(i, c), std::sqrt(dense.covariance(i, i)), 1e-12 * (1 + width));
        }
      }
    }
}

TEST(LowRankGaussian, DrawsHaveItsCovariance) {
  constexpr int rank = 2, rounds = 40'000;
  MinibatchFamily q(low_rank(rank), latent, 1);
  PhiloxSource(5).normals({Purpose::start}, q.parameters());
  for (int i = 0; i < latent; ++i) q.scale()(i, 0) = 0.3 + 0.1 * i;
  const Dense dense({q.location(), q.scale()}, 0, rank);
  std::vector<Moments> products(static_cast<std::size_t>(latent * latent));
  Draws draws(latent, 1, 1);
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    q.draw(PhiloxSource(6), round, draws);
    for (int i = 0; i < latent; ++i)
      for (int j = 0; j < latent; ++j)
        products[i * latent + j].add((draws.z(i, 0) - q.location()(i, 0)) * (draws.z(j, 0) - q.location()(j, 0)));
  }
  EXPECT_EQ(draws.noise.rows(), latent + rank);
  for (int i = 0; i < latent; ++i)
    for (int j = 0; j < latent; ++j) {
      const Estimate estimate = products[i * latent + j].estimate();
      EXPECT_NEAR(estimate.mean, dense.covariance(i, j), 4 * estimate.se) << i << ", " << j;
    }
}

TEST(LowRankGaussian, RefusesImpossibleRanks) {
  EXPECT_THROW(LowRankGaussian(0), KeyError);
  EXPECT_THROW(LowRankGaussian(latent + 1).shape(latent), KeyError);
}

// Threads share the data, and restricted columns keep their values.
TEST(MinibatchFamily, DoesNotDependOnThreads) {
  const auto results = [&](int threads) {
    Team team(threads);
    MinibatchFamily q(low_rank(2), latent, count, &team);
    PhiloxSource(5).normals({Purpose::start}, q.parameters());
    for (int c = 0; c < count; ++c)
      for (int i = 0; i < latent; ++i) q.scale()(i, c) = 0.3 + 0.1 * c;
    q.settle();
    Draws draws(latent, 1, count);
    q.draw(PhiloxSource(6), 1, draws);
    std::vector<double> all(count), coefficient(count, 0.7), slope(q.parameters().size());
    q.log_density(draws.z, Want::value, all, {});
    q.add_score(draws.z, coefficient, slope);
    q.add_entropy_gradient(coefficient, slope);
    q.add_pathwise(draws, draws.z, coefficient, slope);
    all.insert(all.end(), slope.begin(), slope.end());
    for (int c = 0; c < count; ++c) all.push_back(q.log_normalizer(c));
    return all;
  };
  EXPECT_EQ(results(1), results(2));
  EXPECT_EQ(results(1), results(3));
}

}  // namespace
}  // namespace hone::test
