#include "hone/tensor/symmetric_eigen.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/random.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// F Fᵀ + 1 with scales over several powers of ten; with `sparse`, most entries beside the diagonal are 0.
Matrix<double> positive(int n, bool sparse) {
  Matrix<double> factor(n, n), a(n, n);
  PhiloxSource(7).normals({Purpose::draw, 0, static_cast<std::uint32_t>(n)}, factor.view().flat());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      for (int k = 0; k < n; ++k) a(i, j) += factor(i, k) * factor(j, k) * std::pow(10.0, (i + j) % 3);
      if (sparse && (i + j) % 3 != 0) a(i, j) = 0;
      if (i == j) a(i, j) += 100 * n;
    }
  return a;
}

class SymmetricEigenOf : public testing::TestWithParam<std::pair<int, bool>> {};

TEST_P(SymmetricEigenOf, ValuesDescendAndVectorsAreOrthonormalAndTheirs) {
  const auto [n, sparse] = GetParam();
  const Matrix<double> a = positive(n, sparse);
  const SymmetricEigen eigen = symmetric_eigen(a);
  for (int k = 0; k < n; ++k) {
    const auto v = eigen.vector.column(k);
    if (k > 0) {
      EXPECT_GE(eigen.value[k - 1], eigen.value[k]);
    }
    for (int l = 0; l <= k; ++l) EXPECT_NEAR(dot(v, eigen.vector.column(l)), k == l, 1e-12);
    for (int i = 0; i < n; ++i) {
      double product = 0;
      for (int j = 0; j < n; ++j) product += a(i, j) * v[j];
      EXPECT_NEAR(product, eigen.value[k] * v[i], 1e-11 * eigen.value[0]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SymmetricEigenOf,
                         testing::Values(std::pair{1, false}, std::pair{2, false}, std::pair{7, true},
                                         std::pair{20, false}, std::pair{21, true}, std::pair{60, false}),
                         [](const auto& size) {
                           return std::to_string(size.param.first) + (size.param.second ? "_sparse" : "");
                         });

}  // namespace
}  // namespace hone
