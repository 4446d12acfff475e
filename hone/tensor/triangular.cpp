#include "hone/tensor/triangular.hpp"

#include <cmath>
#include <cstring>

#include "hone/base/clones.hpp"
#include "hone/base/error.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

std::span<const double> row_of(std::span<const double> lower, std::size_t i, std::size_t count) {
  return lower.subspan(packed(i, 0), count);
}

constexpr std::size_t panel = TriangularPanels::rows;
using Rows = double __attribute__((vector_size(panel * sizeof(double))));

// Rows of M x_c for vectors c = 0 … C − 1, which share what is read of M. Sums run over the columns upwards, whatever C
// is: so do the bits.
template <int C>
HONE_INLINE void multiply_panel(const double* m, std::size_t columns, const double* x, double* y, std::size_t d,
                                std::size_t rows) {
  Rows sum[C] = {};
  for (std::size_t j = 0; j < columns; ++j) {
    Rows column;
    std::memcpy(&column, m + panel * j, sizeof column);
    for (int c = 0; c < C; ++c) sum[c] += column * x[c * d + j];
  }
  for (int c = 0; c < C; ++c)
    if (rows == panel)
      std::memcpy(y + c * d, &sum[c], sizeof sum[c]);
    else
      for (std::size_t i = 0; i < rows; ++i) y[c * d + i] = sum[c][i];
}

HONE_CLONES void multiply_panel(const double* m, std::size_t columns, const double* x, double* y, std::size_t d,
                                std::size_t rows, std::size_t count) {
  std::size_t c = 0;
  for (; c + 4 <= count; c += 4) multiply_panel<4>(m, columns, x + c * d, y + c * d, d, rows);
  switch (count - c) {  // one vector takes as long as three
    case 3: return multiply_panel<3>(m, columns, x + c * d, y + c * d, d, rows);
    case 2: return multiply_panel<2>(m, columns, x + c * d, y + c * d, d, rows);
    case 1: return multiply_panel<1>(m, columns, x + c * d, y + c * d, d, rows);
  }
}

}  // namespace

TriangularPanels::TriangularPanels(Triangle triangle, MatrixView<const double> matrix)
    : triangle_(triangle), dimension_(static_cast<std::size_t>(matrix.rows())) {
  for (std::size_t row = 0; row < dimension_; row += rows)
    for (std::size_t j = begin(row); j < end(row); ++j)
      for (std::size_t i = row; i < row + rows; ++i)
        values_.push_back(i < dimension_ ? matrix.column(static_cast<int>(j))[i] : 0);
}

// A few vectors at a time, so that they stay near while M passes by.
void TriangularPanels::multiply(MatrixView<const double> x, MatrixView<double> y) const {
  constexpr std::size_t at_once = 32;
  const auto count = static_cast<std::size_t>(x.cols());
  for (std::size_t first = 0; first < count; first += at_once) {
    const double* m = values_.data();
    for (std::size_t row = 0; row < dimension_; row += rows) {
      const std::size_t columns = end(row) - begin(row), from = first * dimension_;
      multiply_panel(m, columns, x.data() + from + begin(row), y.data() + from + row, dimension_,
                     std::min(rows, dimension_ - row), std::min(at_once, count - first));
      m += rows * columns;
    }
  }
}

void multiply_lower(std::span<const double> lower, std::span<const double> x, std::span<double> y) {
  for (std::size_t i = x.size(); i-- > 0;)  // from the last row, so that y may be x
    y[i] = dot(row_of(lower, i, i + 1), x.first(i + 1));
}

void solve_lower(std::span<const double> lower, std::span<const double> b, std::span<double> x) {
  for (std::size_t i = 0; i < b.size(); ++i) x[i] = (b[i] - dot(row_of(lower, i, i), x.first(i))) / lower[packed(i, i)];
}

void solve_lower_transposed(std::span<const double> lower, std::span<const double> b, std::span<double> x) {
  if (x.data() != b.data()) copy(b, x);
  for (std::size_t i = x.size(); i-- > 0;) {  // x_i is known once all rows below have been taken out
    x[i] /= lower[packed(i, i)];
    add_scaled(-x[i], row_of(lower, i, i), x.first(i));
  }
}

std::vector<double> cholesky(MatrixView<const double> matrix) {
  const auto dimension = static_cast<std::size_t>(matrix.rows());
  std::vector<double> lower(packed_size(dimension));
  for (std::size_t i = 0; i < dimension; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double rest =
          matrix(static_cast<int>(i), static_cast<int>(j)) - dot(row_of(lower, i, j), row_of(lower, j, j));
      if (i == j && !(rest > 0)) throw InputError("a covariance matrix is not positive definite");
      lower[packed(i, j)] = i == j ? std::sqrt(rest) : rest / lower[packed(j, j)];
    }
  }
  return lower;
}

}  // namespace hone
