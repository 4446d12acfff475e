#include "hone/tensor/symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/clones.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

HONE_CLONES void rotate(double* __restrict x, double* __restrict y, int count, double c, double s) {
  for (int i = 0; i < count; ++i) {
    const double old = x[i];
    x[i] = c * old - s * y[i];
    y[i] = s * old + c * y[i];
  }
}
// Of the upper n rows.
double off_diagonal(const Matrix<double>& a) {
  double sum = 0;
  for (int j = 0; j < a.cols(); ++j)
    for (int i = 0; i < j; ++i) sum += a(i, j) * a(i, j);
  return sum;
}

// Makes a(p, q) vanish for every q > p. The first n rows are the matrix, those below its eigenvectors. On entry and on
// exit the matrix is symmetric in the rows and columns after p, where later rotations read it; left of them only its
// upper triangle is kept.
void rotate_out(Matrix<double>& a, int p) {
  const int n = a.cols();
  for (int q = p + 1; q < n; ++q) {
    const double across = a(q, p);
    if (std::abs(across) < 1e-300) continue;
    for (int i = p + 1; i < q; ++i) a(i, q) = a(q, i);
    a(p, q) = across;
    // tan of the smaller of the angles that make a(p, q) vanish
    const double half = 0.5 * (a(q, q) - a(p, p)), length = std::hypot(half, across);
    const double tangent = across / (half + std::copysign(length, half));
    const double c = 1 / std::sqrt(1 + tangent * tangent), s = c * tangent;
    const double at_p = a(p, p) - tangent * across, at_q = a(q, q) + tangent * across;
    rotate(a.column(p).data(), a.column(q).data(), a.rows(), c, s);
    a(p, p) = at_p;
    a(q, q) = at_q;
    a(p, q) = a(q, p) = 0;
    for (int i = p + 1; i < q; ++i) a(q, i) = a(i, q);
  }
  for (int q = p + 1; q < n; ++q) a(p, q) = a(q, p);
}

}  // namespace

SymmetricEigen symmetric_eigen(Matrix<double> a) {
  const int n = a.rows();
  Matrix<double> both(2 * n, n);  // the matrix, and its eigenvectors below
  double diagonal = 0;
  for (int i = 0; i < n; ++i) {
    copy(a.column(i), both.column(i));
    both(n + i, i) = 1;
    diagonal += a(i, i) * a(i, i);
  }
  for (int sweep = 0; sweep < 30 && off_diagonal(both) > 1e-26 * diagonal; ++sweep) {
    for (int p = 0; p < n; ++p) rotate_out(both, p);
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < j; ++i) both(j, i) = both(i, j);
  }
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return both(x, x) > both(y, y); });
  SymmetricEigen result{std::vector<double>(n), Matrix<double>(n, n)};
  for (int k = 0; k < n; ++k) {
    result.value[k] = both(order[k], order[k]);
    copy(both.column(order[k]).last(static_cast<std::size_t>(n)), result.vector.column(k));
  }
  return result;
}

}  // namespace hone
