// q's moments: exact where its components are Gaussians, else from draws. Both must say the same.
#include "hone/assess/q_checks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/tensor/triangular.hpp"

namespace hone {
namespace {

// The same q, whose components are not known.
class Hidden final : public Family {
 public:
  explicit Hidden(const Family& family) : Family(family.dimension()), family_(family) {}
  int components() const override { return family_.components(); }
  void log_weights(std::span<double> out) const override { family_.log_weights(out); }
  void draw(const RandomSource& random, std::uint32_t iteration, Draws& draws,
            std::uint32_t first_datum) const override {
    family_.draw(random, iteration, draws, first_datum);
  }
  void log_density(MatrixView<const double> z, Want want, std::span<double> value,
                   MatrixView<double> gradient) const override {
    family_.log_density(z, want, value, gradient);
  }
  void add_pathwise(const Draws& draws, MatrixView<const double> dz, std::span<const double> coefficient,
                    std::span<double> gradient) const override {
    family_.add_pathwise(draws, dz, coefficient, gradient);
  }
  void add_score(MatrixView<const double> z, std::span<const double> coefficient,
                 std::span<double> gradient) const override {
    family_.add_score(z, coefficient, gradient);
  }
  void moments(std::span<double> mean, std::span<double> sd) const override { family_.moments(mean, sd); }

 private:
  const Family& family_;
};

constexpr int d = 4;

// Standard normal draws are the refined ones, in coordinates where q is something else.
RefinedDraws refined_draws() {
  constexpr int n = 4000, pairs = 200;
  RefinedDraws r;
  r.states.z = Matrix<double>(d, n);
  r.zt = Matrix<double>(d, pairs);
  r.z0 = Matrix<double>(d, pairs);
  const PhiloxSource random(7);
  random.normals({Purpose::draw, 1}, r.states.z.view().flat());
  random.normals({Purpose::draw, 2}, r.zt.view().flat());
  random.normals({Purpose::draw, 3}, r.z0.view().flat());
  r.log_q0.assign(pairs, 0);
  r.log_qt.assign(pairs, 0);
  r.component.assign(pairs, 0);
  r.checks.effective = n;
  return r;
}

void expect_same(const Family& q, const Whitening& whitening) {
  const RefinedDraws r = refined_draws();
  const Psis weights = smooth_weights(std::vector<double>(200, 0.0));
  const QChecks exact = check_q(r, q, whitening, weights, {3, 1});
  const QChecks drawn = check_q(r, Hidden(q), whitening, weights, {3, 1});
  for (int k = 0; k < d; ++k) {
    EXPECT_NEAR(exact.shift[k], drawn.shift[k], 4 * exact.sd_ratio[k] / std::sqrt(20'000)) << k;
    EXPECT_NEAR(exact.sd_ratio[k] / drawn.sd_ratio[k], 1, 4 / std::sqrt(2 * 20'000)) << k;
  }
  ASSERT_EQ(exact.narrowest.size(), drawn.narrowest.size());
  for (std::size_t k = 0; k < exact.narrowest.size(); ++k) {
    EXPECT_NEAR(exact.narrowest[k].sd_ratio / drawn.narrowest[k].sd_ratio, 1, 4 / std::sqrt(2 * 20'000)) << k;
    EXPECT_NEAR(exact.widest[k].sd_ratio / drawn.widest[k].sd_ratio, 1, 4 / std::sqrt(2 * 20'000)) << k;
  }
}

// A Gaussian over each form of coordinates
template <class Test>
void over_coordinates(const Test& test) {
  const std::vector<double> mean = {3, -1, 0.5, 100};
  std::vector<double> lower(packed_size(d));
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j <= i; ++j) lower[packed(i, j)] = i == j ? 0.5 + 0.7 * i : 0.3 * (i + 1.0) - 0.5 * j;
  Matrix<double> u(d, 1);
  for (int i = 0; i < d; ++i) u(i, 0) = 0.5;
  test(Whitening::dense(mean, lower));
  test(Whitening::low_rank(mean, {1, 2, 0.1, 5}, u, {3}));
}

void set_scale(Covariance covariance, double turn, std::span<double> scale) {
  for (std::size_t i = 0; i < d; ++i)
    if (covariance == Covariance::diagonal)
      scale[i] = 0.6 + 0.4 * i;
    else
      for (std::size_t j = 0; j <= i; ++j) scale[packed(i, j)] = i == j ? 0.8 + 0.2 * i : turn * (1.0 + i - 2.0 * j);
}

TEST(QMoments, OfGaussiansAreThoseOfTheirDraws) {
  for (const Covariance covariance : {Covariance::diagonal, Covariance::full}) {
    GaussianFamily q(d, covariance);
    for (int i = 0; i < d; ++i) q.mean()[i] = 0.3 * i - 0.2;
    set_scale(covariance, 0.3, q.scale());
    over_coordinates([&](const Whitening& whitening) { expect_same(q, whitening); });
  }
}

TEST(QMoments, OfMixturesAreThoseOfTheirDraws) {
  for (const Covariance covariance : {Covariance::diagonal, Covariance::full}) {
    MixtureFamily q(d, 3, covariance);
    for (int k = 0; k < 3; ++k) {
      for (int i = 0; i < d; ++i) q.mean(k)[i] = 0.4 * (k - 1) * (i - 1.5);
      set_scale(covariance, 0.2 * (k - 1), q.scale(k));
      q.logits()[k] = 0.5 * k;
    }
    over_coordinates([&](const Whitening& whitening) { expect_same(q, whitening); });
  }
}

}  // namespace
}  // namespace hone
