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
void rotate_columns(MatrixView<double> m, int p, int q, double c, double s) {
  rotate(m.column(p).data(), m.column(q).data(), m.rows(), c, s);
}

double off_diagonal(const Matrix<double>& a) {
  double sum = 0;
  for (int j = 0; j < a.cols(); ++j)
    for (int i = 0; i < j; ++i) sum += a(i, j) * a(i, j);
  return sum;
}

}  // namespace

SymmetricEigen symmetric_eigen(Matrix<double> a) {
  const int n = a.rows();
  Matrix<double> v(n, n);
  double diagonal = 0;
  for (int i = 0; i < n; ++i) {
    v(i, i) = 1;
    diagonal += a(i, i) * a(i, i);
  }
  for (int sweep = 0; sweep < 30 && off_diagonal(a) > 1e-26 * diagonal; ++sweep)
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        if (std::abs(a(p, q)) < 1e-300) continue;
        // tan of the smaller of the angles that make a(p, q) vanish
        const double half = 0.5 * (a(q, q) - a(p, p)), length = std::hypot(half, a(p, q));
        const double tangent = a(p, q) / (half + std::copysign(length, half));
        const double c = 1 / std::sqrt(1 + tangent * tangent), s = c * tangent;
        const double at_p = a(p, p) - tangent * a(p, q), at_q = a(q, q) + tangent * a(p, q);
        rotate_columns(a, p, q, c, s);
        for (int i = 0; i < n; ++i) {  // rows mirror columns; the corners are set below
          a(p, i) = a(i, p);
          a(q, i) = a(i, q);
        }
        a(p, p) = at_p;
        a(q, q) = at_q;
        a(p, q) = a(q, p) = 0;
        rotate_columns(v, p, q, c, s);
      }
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return a(x, x) > a(y, y); });
  SymmetricEigen result{std::vector<double>(n), Matrix<double>(n, n)};
  for (int k = 0; k < n; ++k) {
    result.value[k] = a(order[k], order[k]);
    copy(v.column(order[k]), result.vector.column(k));
  }
  return result;
}

}  // namespace hone
