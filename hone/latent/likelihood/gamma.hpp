#pragma once

#include "hone/base/scalar.hpp"

namespace hone {

// log Γ(r + n) − log Γ(r) = log r (r + 1) … (r + n − 1) and its derivative in r, for r > 0 and n = 0, 1, 2, …: products
// of few factors, and Stirling's series of numbers from 16 on, where both have an error of 1e-14.
namespace rising {

inline constexpr int few = 16;

HONE_INLINE double stirling(double y) {  // log Γ(y)
  const double u = 1 / (y * y);
  return (y - 0.5) * std::log(y) - y + 0.5 * log_two_pi +
         (1.0 / 12 - u * (1.0 / 360 - u * (1.0 / 1260 - u * (1.0 / 1680)))) / y;
}
HONE_INLINE double stirling_derivative(double y) {
  const double u = 1 / (y * y);
  return std::log(y) - 0.5 / y - u * (1.0 / 12 - u * (1.0 / 120 - u * (1.0 / 252 - u * (1.0 / 240))));
}

// Π (r + k) and Σ 1 / (r + k) over k < n ≤ few, with one division
HONE_INLINE double product(double r, double n) {
  double all = 1;
  for (double k = 0; k < n; k += 1) all *= r + k;
  return all;
}
HONE_INLINE double inverse_sum(double r, double n) {
  double over = 0, under = 1;
  for (double k = 0; k < n; k += 1) {
    over = over * (r + k) + under;
    under *= r + k;
  }
  return over / under;
}

}  // namespace rising

HONE_INLINE double log_rising(double r, double n) {
  using namespace rising;
  if (n <= few && r < 1e18) return std::log(product(r, n));
  if (r >= few) return stirling(r + n) - stirling(r);
  return stirling(r + n) - stirling(r + few) + std::log(product(r, few));
}
HONE_INLINE double log_rising_derivative(double r, double n) {
  using namespace rising;
  if (n <= few && r < 1e18) return inverse_sum(r, n);
  if (r >= few) return stirling_derivative(r + n) - stirling_derivative(r);
  return stirling_derivative(r + n) - stirling_derivative(r + few) + inverse_sum(r, few);
}

}  // namespace hone
