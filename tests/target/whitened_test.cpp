#include "hone/target/whitened.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/base/random.hpp"
#include "hone/base/scalar.hpp"
#include "hone/target/density.hpp"
#include "hone/tensor/symmetric_eigen.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"
#include "tests/support/differences.hpp"

namespace hone::test {
namespace {

constexpr int d = 4;

std::vector<double> normals(std::uint32_t part, std::size_t size) {
  std::vector<double> x(size);
  PhiloxSource(11).normals({Purpose::draw, part}, x);
  return x;
}

std::vector<double> some_lower(std::uint32_t part) {
  std::vector<double> lower = normals(part, packed_size(d));
  for (int i = 0; i < d; ++i) lower[packed(i, i)] = 0.5 + std::abs(lower[packed(i, i)]);
  return lower;
}

std::vector<Whitening> every_form() {
  Matrix<double> symmetric(d, d);
  const std::vector<double> noise = normals(9, d * d);
  for (int i = 0; i < d; ++i)
    for (int j = 0; j < d; ++j) symmetric(i, j) = noise[i * d + j] + noise[j * d + i];
  const SymmetricEigen eigen = symmetric_eigen(symmetric);
  Matrix<double> u(d, 2);
  for (int k = 0; k < 2; ++k) copy(eigen.vector.column(k), u.column(k));
  const std::vector<double> sd{1e-3, 2, 1e3, 0.7}, more{0.5, 2, 3, 1.5};
  const Whitening low_rank = Whitening::low_rank(normals(1, d), sd, u, {3, 0.2});
  return {Whitening::diagonal(normals(1, d), sd), Whitening::dense(normals(1, d), some_lower(2)), low_rank,
          low_rank.then_diagonal(normals(3, d), more)};
}

TEST(Whitening, ThereAndBackWithItsDeterminantAndVariances) {
  for (const Whitening& w : every_form()) {
    const std::vector<double> e = normals(4, d);
    std::vector<double> z(d), back(d);
    w.to_z(e, z);
    w.to_e(z, back);
    for (int i = 0; i < d; ++i) EXPECT_NEAR(back[i], e[i], 1e-9);
    const Matrix<double> factor = w.factor();
    Matrix<double> covariance(d, d);
    for (int i = 0; i < d; ++i)
      for (int j = 0; j < d; ++j)
        for (int k = 0; k < d; ++k) covariance(i, j) += factor(i, k) * factor(j, k);
    const std::vector<double> root = cholesky(covariance);
    double log_det = 0;
    for (int i = 0; i < d; ++i) {
      log_det += std::log(root[packed(i, i)]);
      EXPECT_NEAR(w.variance(i) / covariance(i, i), 1, 1e-12);
      EXPECT_NEAR(w.variances()[i] / covariance(i, i), 1, 1e-12);
    }
    EXPECT_NEAR(w.log_det(), log_det, 1e-9);
  }
}

TEST(Whitening, DenseProductsInEverySizeAndManyColumnsAtOnce) {
  for (const int size : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 20, 31, 37, 64}) {
    std::vector<double> packed_lower = normals(20, packed_size(static_cast<std::size_t>(size)));
    for (int i = 0; i < size; ++i) packed_lower[packed(i, i)] = 1 + std::abs(packed_lower[packed(i, i)]);
    const Whitening w = Whitening::dense(normals(21, size), packed_lower);
    for (const int count : {1, 2, 3, 6}) {
      Matrix<double> e(size, count), z(size, count), slope(size, count);
      copy(normals(22, e.view().flat().size()), e.view().flat());
      w.to_z(e, z);
      w.pull_back(e, slope);
      std::vector<double> one(size);
      for (int c = 0; c < count; ++c) {
        for (int i = 0; i < size; ++i) {
          double forth = 0, back = 0;
          for (int j = 0; j <= i; ++j) forth += packed_lower[packed(i, j)] * e(j, c);
          for (int j = i; j < size; ++j) back += packed_lower[packed(j, i)] * e(j, c);
          EXPECT_NEAR(z(i, c), w.mean()[i] + forth, 1e-12) << size << " " << count << " " << i;
          EXPECT_NEAR(slope(i, c), back, 1e-12) << size << " " << count << " " << i;
        }
        w.to_z(e.column(c), one);  // the same bits, one by one
        EXPECT_TRUE(std::ranges::equal(one, z.column(c)));
        w.pull_back(e.column(c), one);
        EXPECT_TRUE(std::ranges::equal(one, slope.column(c)));
      }
    }
  }
}

TEST(Whitening, ComposesAsTheMapsDo) {
  const std::vector<double> shift = normals(5, d), e = normals(6, d), right = some_lower(7), sd{0.5, 2, 3, 1.5};
  std::vector<double> inner(d), expected(d), actual(d);
  for (const Whitening& w : every_form()) {
    for (int i = 0; i < d; ++i) inner[i] = shift[i] + sd[i] * e[i];
    w.to_z(inner, expected);
    w.then_diagonal(shift, sd).to_z(e, actual);
    for (int i = 0; i < d; ++i) EXPECT_NEAR(actual[i], expected[i], 1e-9 * (1 + std::abs(expected[i])));
    if (!w.is_dense()) continue;
    multiply_lower(right, e, inner);
    for (int i = 0; i < d; ++i) inner[i] += shift[i];
    w.to_z(inner, expected);
    w.then_lower(shift, right).to_z(e, actual);
    for (int i = 0; i < d; ++i) EXPECT_NEAR(actual[i], expected[i], 1e-9 * (1 + std::abs(expected[i])));
  }
}

TEST(WhitenedTarget, GradientsAgreeWithDifferencesAndPointsAreCounted) {
  const DensityTarget target(d, [](std::span<const double> z, std::span<double> g) {
    double sum = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      sum += std::sin(0.01 * z[i]) + 0.02 * z[i] * z[0];
      g[i] = 0.01 * std::cos(0.01 * z[i]) + 0.02 * z[0];
      g[0] += i > 0 ? 0.02 * z[i] : 0.02 * z[0];
    }
    return sum;
  });
  const CountedTarget counted(target);
  for (const Whitening& w : every_form()) {
    const WhitenedTarget whitened(counted, w);
    std::vector<double> e = normals(8, d), slope(d), unused(d);
    double value = 0;
    const auto at = [&] {
      whitened.evaluate({e.data(), d, 1}, Want::value, {&value, 1}, {});
      return value;
    };
    whitened.evaluate({e.data(), d, 1}, Want::both, {&value, 1}, {slope.data(), d, 1});
    const double here = value;
    EXPECT_EQ(at(), here);
    for (int i = 0; i < d; ++i) EXPECT_NEAR(slope[i], derivative_in(e[i], at), 1e-5 * (1 + std::abs(slope[i])));
  }
  EXPECT_EQ(counted.count(), 4 * (2 + 4 * d));
}

}  // namespace
}  // namespace hone::test
