#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

namespace hone {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double log_two_pi = 1.8378770664093454836;

inline double square(double x) { return x * x; }

// log Σ exp(x_i); −∞ for an empty span and where every x_i is −∞.
inline double log_sum_exp(std::span<const double> x) {
  const double top = x.empty() ? -infinity : *std::max_element(x.begin(), x.end());
  if (top == -infinity) return top;
  double sum = 0;
  for (const double value : x) sum += std::exp(value - top);
  return top + std::log(sum);
}

}  // namespace hone
