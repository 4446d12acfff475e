#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace hone {

namespace vectors_detail {
double dot(const double* x, const double* y, std::size_t count);
void add_scaled(double factor, const double* from, double* to, std::size_t count);
inline constexpr std::size_t few = 8;  // for fewer elements a call costs more than it saves
}  // namespace vectors_detail

// Σ x_i y_i. Long sums are accumulated in several partial sums, in an order that depends on the length alone.
inline double dot(std::span<const double> x, std::span<const double> y) {
  if (x.size() >= vectors_detail::few) return vectors_detail::dot(x.data(), y.data(), x.size());
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// to += factor · from
inline void add_scaled(double factor, std::span<const double> from, std::span<double> to) {
  if (to.size() >= vectors_detail::few) return vectors_detail::add_scaled(factor, from.data(), to.data(), to.size());
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

inline void copy(std::span<const double> from, std::span<double> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace hone
