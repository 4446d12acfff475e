#include "hone/tensor/triangular.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/base/random.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone::test {
namespace {

// Products and solutions against plain sums, in every size around that of a block, in place and not.
TEST(Triangular, ProductsAndSolutionsInEverySize) {
  for (std::size_t d = 1; d <= 21; ++d) {
    std::vector<double> lower(packed_size(d)), x(d), y(d), back(d);
    const PhiloxSource random(d);
    random.normals({Purpose::draw, 1}, lower);
    random.normals({Purpose::draw, 2}, x);
    for (double& value : lower) value /= static_cast<double>(d);
    for (std::size_t i = 0; i < d; ++i) lower[packed(i, i)] = 1 + std::abs(lower[packed(i, i)]);

    multiply_lower(lower, x, y);
    for (std::size_t i = 0; i < d; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j <= i; ++j) sum += lower[packed(i, j)] * x[j];
      EXPECT_NEAR(y[i], sum, 1e-14 * static_cast<double>(d)) << d << " " << i;
    }
    std::vector<double> in_place = x;
    multiply_lower(lower, in_place, in_place);
    EXPECT_EQ(in_place, y);

    solve_lower(lower, y, back);
    for (std::size_t i = 0; i < d; ++i) EXPECT_NEAR(back[i], x[i], 1e-12) << d << " " << i;
    solve_lower(lower, in_place, in_place);
    EXPECT_EQ(in_place, back);

    solve_lower_transposed(lower, y, back);
    for (std::size_t i = 0; i < d; ++i) {
      double sum = 0;
      for (std::size_t j = i; j < d; ++j) sum += lower[packed(j, i)] * back[j];
      EXPECT_NEAR(sum, y[i], 1e-12) << d << " " << i;
    }
  }
}

// Panels against products of single vectors, at every size around the panel's; a column's bits do not depend on others.
TEST(Triangular, PanelsOfManyVectors) {
  for (int d = 1; d <= 35; ++d) {
    Matrix<double> lower(d, d), upper(d, d), x(d, 9);
    const PhiloxSource random(static_cast<std::uint64_t>(d));
    random.normals({Purpose::draw, 1}, x.view().flat());
    for (int j = 0; j < d; ++j)
      for (int i = j; i < d; ++i) lower(i, j) = upper(j, i) = std::sin(1.0 + i * d + j);
    for (const Triangle triangle : {Triangle::lower, Triangle::upper}) {
      const Matrix<double>& m = triangle == Triangle::lower ? lower : upper;
      const TriangularPanels panels(triangle, m);
      Matrix<double> all(d, 9), some(d, 9);
      panels.multiply(x, all);
      for (int c = 0; c < 9; ++c)
        for (int i = 0; i < d; ++i) {
          double sum = 0;
          for (int j = 0; j < d; ++j) sum += m(i, j) * x(j, c);
          EXPECT_NEAR(all(i, c), sum, 1e-13 * d) << d << " " << i;
        }
      for (int count = 1; count < 9; ++count) {
        panels.multiply(x.view().columns(0, count), some.view().columns(0, count));
        EXPECT_TRUE(std::ranges::equal(some.view().columns(0, count).flat(), all.view().columns(0, count).flat()));
      }
    }
  }
}

TEST(Vectors, SumsOfEveryLength) {
  for (std::size_t n = 0; n <= 70; ++n) {
    std::vector<double> x(n), y(n);
    PhiloxSource(3).normals({Purpose::draw, 1}, x);
    PhiloxSource(3).normals({Purpose::draw, 2}, y);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += x[i] * y[i];
    EXPECT_NEAR(dot(x, y), sum, 1e-13) << n;
    std::vector<double> moved = y;
    add_scaled(0.5, x, moved);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(moved[i], y[i] + 0.5 * x[i]);
  }
}

}  // namespace
}  // namespace hone::test
