#include "hone/tensor/triangular.hpp"

#include <cmath>

#include "hone/base/error.hpp"

namespace hone {

namespace {

constexpr std::size_t block = 4;

// sum[k] += Σ_{j < count} L_{row + k, j} x[j] for a block of rows. The sums do not wait for each other; each runs over j
// upwards, as it would alone.
void add_rows(std::span<const double> lower, std::size_t row, std::size_t count, const double* x, double* sum) {
  const double* at[block];
  for (std::size_t k = 0; k < block; ++k) at[k] = lower.data() + packed(row + k, 0);
  double s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];
  for (std::size_t j = 0; j < count; ++j) {
    s0 += at[0][j] * x[j];
    s1 += at[1][j] * x[j];
    s2 += at[2][j] * x[j];
    s3 += at[3][j] * x[j];
  }
  sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}

}  // namespace

void multiply_lower(std::span<const double> lower, std::span<const double> x, std::span<double> y) {
  std::size_t i = x.size();  // from the last row, so that y may be x
  for (; i >= block; i -= block) {
    const std::size_t row = i - block;
    double sum[block] = {};
    add_rows(lower, row, row, x.data(), sum);
    for (std::size_t k = 0; k < block; ++k)
      for (std::size_t j = row; j <= row + k; ++j) sum[k] += lower[packed(row + k, j)] * x[j];
    for (std::size_t k = 0; k < block; ++k) y[row + k] = sum[k];
  }
  while (i-- > 0) {
    double sum = 0;
    for (std::size_t j = 0; j <= i; ++j) sum += lower[packed(i, j)] * x[j];
    y[i] = sum;
  }
}

void solve_lower(std::span<const double> lower, std::span<const double> b, std::span<double> x) {
  std::size_t row = 0;
  const auto finish = [&](std::size_t i, double rest, std::size_t known) {
    for (std::size_t j = known; j < i; ++j) rest -= lower[packed(i, j)] * x[j];
    x[i] = rest / lower[packed(i, i)];
  };
  for (; row + block <= b.size(); row += block) {
    double minus_rest[block];  // negated, which is exact
    for (std::size_t k = 0; k < block; ++k) minus_rest[k] = -b[row + k];
    add_rows(lower, row, row, x.data(), minus_rest);
    for (std::size_t k = 0; k < block; ++k) finish(row + k, -minus_rest[k], row);
  }
  for (; row < b.size(); ++row) finish(row, b[row], 0);
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
