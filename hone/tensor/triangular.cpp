#include "hone/tensor/triangular.hpp"

#include <algorithm>
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

constexpr std::size_t rows = TriangularPanels::rows;
using Rows = double __attribute__((vector_size(rows * sizeof(double))));
using Panel = TriangularPanels::Panel;

// Rows of M x_c in P adjacent panels, for vectors c = 0 … C − 1, which share each read of M. Sums run over the columns
// in ascending order whatever P and C are, so the bits are always the same.
template <int P, int C>
HONE_INLINE void multiply_panels(const double* m, const Panel* panel, const double* x, double* y, std::size_t d) {
  Rows sum[P][C] = {};
  const auto add = [&](int p, std::size_t from, std::size_t to) {
    for (std::size_t j = from; j < to; ++j) {
      Rows column;
      std::memcpy(&column, m + panel[p].values + rows * (j - panel[p].begin), sizeof column);
      for (int c = 0; c < C; ++c) sum[p][c] += column * x[c * d + j];
    }
  };
  const std::size_t from = panel[P - 1].begin, to = panel[0].end;  // the columns that all of them have
  for (int p = 0; p < P - 1; ++p) add(p, panel[p].begin, from);
  for (std::size_t j = from; j < to; ++j)
    for (int p = 0; p < P; ++p) add(p, j, j + 1);
  for (int p = 1; p < P; ++p) add(p, to, panel[p].end);
  for (int p = 0; p < P; ++p)
    for (int c = 0; c < C; ++c) {
      double* const out = y + c * d + panel[p].row;
      if (panel[p].row + rows <= d)
        std::memcpy(out, &sum[p][c], sizeof sum[p][c]);
      else
        for (std::size_t i = 0; panel[p].row + i < d; ++i) out[i] = sum[p][c][i];
    }
}

template <int P, int C>
HONE_INLINE void multiply_few(const double* m, std::span<const Panel> panels, const double* x, double* y,
                              std::size_t d) {
  std::size_t k = 0;
  for (; k + P <= panels.size(); k += P) multiply_panels<P, C>(m, &panels[k], x, y, d);
  for (; k < panels.size(); ++k) multiply_panels<1, C>(m, &panels[k], x, y, d);
}

// Additions depend on each other, so four sums run side by side: of four vectors or, for the last few, of several
// panels.
HONE_CLONES void multiply_some(const double* m, std::span<const Panel> panels, const double* x, double* y,
                               std::size_t d, std::size_t count) {
  const std::size_t by_fours = count / 4 * 4;
  for (const Panel& panel : panels)
    for (std::size_t c = 0; c < by_fours; c += 4) multiply_panels<1, 4>(m, &panel, x + c * d, y + c * d, d);
  x += by_fours * d;
  y += by_fours * d;
  switch (count - by_fours) {
    case 3:
      return multiply_few<1, 3>(m, panels, x, y, d);
    case 2:
      return multiply_few<2, 2>(m, panels, x, y, d);
    case 1:
      return multiply_few<4, 1>(m, panels, x, y, d);
  }
}

}  // namespace

TriangularPanels::TriangularPanels(Triangle triangle, MatrixView<const double> matrix)
    : dimension_(static_cast<std::size_t>(matrix.rows())) {
  for (std::size_t row = 0; row < dimension_; row += rows) {
    const bool lower = triangle == Triangle::lower;
    const Panel panel{.values = values_.size(),
                      .row = row,
                      .begin = lower ? 0 : row,
                      .end = lower ? std::min(row + rows, dimension_) : dimension_};
    for (std::size_t j = panel.begin; j < panel.end; ++j)
      for (std::size_t i = row; i < row + rows; ++i)
        values_.push_back(i < dimension_ ? matrix.column(static_cast<int>(j))[i] : 0);
    panels_.push_back(panel);
  }
}

// A few vectors at a time, so that they stay in the cache while M is read.
void TriangularPanels::multiply(MatrixView<const double> x, MatrixView<double> y) const {
  constexpr std::size_t at_once = 32;
  const auto count = static_cast<std::size_t>(x.cols());
  for (std::size_t first = 0; first < count; first += at_once)
    multiply_some(values_.data(), panels_, x.data() + first * dimension_, y.data() + first * dimension_, dimension_,
                  std::min(at_once, count - first));
}

void multiply_lower(std::span<const double> lower, std::span<const double> x, std::span<double> y) {
  for (std::size_t i = x.size(); i-- > 0;)  // from the last row up, so that y may be x
    y[i] = dot(row_of(lower, i, i + 1), x.first(i + 1));
}

void solve_lower(std::span<const double> lower, std::span<const double> b, std::span<double> x) {
  for (std::size_t i = 0; i < b.size(); ++i) x[i] = (b[i] - dot(row_of(lower, i, i), x.first(i))) / lower[packed(i, i)];
}

void solve_lower_transposed(std::span<const double> lower, std::span<const double> b, std::span<double> x) {
  if (x.data() != b.data()) copy(b, x);
  for (std::size_t i = x.size(); i-- > 0;) {  // x_i is known once all rows below have been subtracted
    x[i] /= lower[packed(i, i)];
    add_scaled(-x[i], row_of(lower, i, i), x.first(i));
  }
}

std::vector<double> divide_lower(std::span<const double> r, std::span<const double> s) {
  std::size_t d = 0;
  while (packed_size(d) < s.size()) ++d;
  std::vector<double> result(s.size()), column(d);
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t i = 0; i < d; ++i) column[i] = i < j ? 0 : s[packed(i, j)];
    solve_lower(r, column, column);
    for (std::size_t i = j; i < d; ++i) result[packed(i, j)] = column[i];
  }
  return result;
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
