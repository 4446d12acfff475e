#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "hone/base/clones.hpp"
#include "hone/base/constants.hpp"

namespace hone {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double log_two_pi = 1.8378770664093454836;

HONE_INLINE double square(double x) { return x * x; }

// log N(x; 0, 1)
HONE_INLINE double log_standard_normal(double x) { return -0.5 * (square(x) + log_two_pi); }

// log(1 + exp(a)) and its derivative, without overflow and without cancellation
HONE_INLINE double softplus(double a) { return std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a))); }
HONE_INLINE double sigmoid(double a) { return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a)); }

// log(exp(s) + exp(a)) with s = softplus_shift, never below s; its derivative is sigmoid(a − s)
HONE_INLINE double modified_softplus(double a) { return softplus_shift + softplus(a - softplus_shift); }

// log Σ exp(x_i); −∞ for an empty span or if every x_i is −∞.
inline double log_sum_exp(std::span<const double> x) {
  const double top = x.empty() ? -infinity : *std::max_element(x.begin(), x.end());
  if (top == -infinity) return top;
  double sum = 0;
  for (const double value : x) sum += std::exp(value - top);
  return top + std::log(sum);
}

}  // namespace hone
