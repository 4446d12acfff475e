#pragma once

#include <cmath>
#include <vector>

#include "hone/tensor/matrix.hpp"

namespace hone::test {

struct Eigen {
  std::vector<double> value;  // descending
  Matrix<double> vector;      // one a column
};

// Of a symmetric matrix, by Jacobi's rotations.
inline Eigen eigen(Matrix<double> a) {
  const int n = a.rows();
  Matrix<double> v(n, n);
  for (int i = 0; i < n; ++i) v(i, i) = 1;
  for (int sweep = 0; sweep < 30; ++sweep)
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        if (std::abs(a(p, q)) < 1e-300) continue;
        const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p));
        const double c = std::cos(angle), s = std::sin(angle);
        const auto rotate = [&](double& x, double& y) {
          const double old = x;
          x = c * x - s * y;
          y = s * old + c * y;
        };
        for (int i = 0; i < n; ++i) rotate(a(i, p), a(i, q));
        for (int i = 0; i < n; ++i) rotate(a(p, i), a(q, i));
        for (int i = 0; i < n; ++i) rotate(v(i, p), v(i, q));
      }
  Eigen result{std::vector<double>(n), Matrix<double>(n, n)};
  std::vector<bool> used(n);
  for (int k = 0; k < n; ++k) {
    int best = -1;
    for (int i = 0; i < n; ++i)
      if (!used[i] && (best < 0 || a(i, i) > a(best, best))) best = i;
    used[best] = true;
    result.value[k] = a(best, best);
    copy(v.column(best), result.vector.column(k));
  }
  return result;
}

}  // namespace hone::test
