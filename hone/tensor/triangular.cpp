#include "hone/tensor/triangular.hpp"

#include <cmath>

#include "hone/base/error.hpp"

namespace hone {

void multiply_lower(std::span<const double> lower, std::span<const double> x, std::span<double> y) {
  for (std::size_t i = x.size(); i-- > 0;) {  // from the last row, so that y may be x
    double sum = 0;
    for (std::size_t j = 0; j <= i; ++j) sum += lower[packed(i, j)] * x[j];
    y[i] = sum;
  }
}

void solve_lower(std::span<const double> lower, std::span<const double> b, std::span<double> x) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    double rest = b[i];
    for (std::size_t j = 0; j < i; ++j) rest -= lower[packed(i, j)] * x[j];
    x[i] = rest / lower[packed(i, i)];
  }
}

void solve_lower_transposed(std::span<const double> lower, std::span<const double> b, std::span<double> x) {
  for (std::size_t i = b.size(); i-- > 0;) {
    double rest = b[i];
    for (std::size_t j = i + 1; j < b.size(); ++j) rest -= lower[packed(j, i)] * x[j];
    x[i] = rest / lower[packed(i, i)];
  }
}

std::vector<double> cholesky(MatrixView<const double> matrix) {
  const auto dimension = static_cast<std::size_t>(matrix.rows());
  std::vector<double> lower(packed_size(dimension));
  for (std::size_t i = 0; i < dimension; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double rest = matrix(static_cast<int>(i), static_cast<int>(j));
      for (std::size_t k = 0; k < j; ++k) rest -= lower[packed(i, k)] * lower[packed(j, k)];
      if (i == j && !(rest > 0)) throw InputError("a covariance matrix is not positive definite");
      lower[packed(i, j)] = i == j ? std::sqrt(rest) : rest / lower[packed(j, j)];
    }
  }
  return lower;
}

}  // namespace hone
