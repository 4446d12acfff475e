#include "hone/tensor/symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone {
namespace {

void rotate_columns(MatrixView<double> m, int p, int q, double c, double s) {
  double* const x = m.column(p).data();
  double* const y = m.column(q).data();
  for (int i = 0; i < m.rows(); ++i) {
    const double old = x[i];
    x[i] = c * old - s * y[i];
    y[i] = s * old + c * y[i];
  }
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
        const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p));
        const double c = std::cos(angle), s = std::sin(angle);
        rotate_columns(a, p, q, c, s);
        for (int i = 0; i < n; ++i) {
          const double old = a(p, i);
          a(p, i) = c * old - s * a(q, i);
          a(q, i) = s * old + c * a(q, i);
        }
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
