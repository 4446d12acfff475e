#include "hone/tensor/triangular.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/random.hpp"

namespace hone::test {
namespace {

// Products and solutions against the sums as they are written, in every size about the blocks', in place and not.
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

}  // namespace
}  // namespace hone::test
