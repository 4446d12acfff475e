#include "hone/assess/selection.hpp"

#include <algorithm>
#include <array>

namespace hone {
namespace {

// Moves the values below the pivot to the front, without branches that the processor would have to guess; how many.
std::size_t partition_below(std::span<double> values, double pivot) {
  std::size_t below = 0;
  for (double& x : values) {
    const double own = x;
    x = values[below];
    values[below] = own;
    below += own < pivot;
  }
  return below;
}

}  // namespace

void select(std::span<double> values, std::size_t k) {
  constexpr std::size_t sampled = 64, margin = 3, few = 512;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(k);
  if (values.size() < few) {
    std::ranges::nth_element(values, at);
    return;
  }
  // A pivot that most likely leaves the value on the shorter side.
  std::array<double, sampled> sample;
  for (std::size_t i = 0; i < sampled; ++i) sample[i] = values[i * (values.size() / sampled)];
  std::ranges::sort(sample);
  const std::size_t rank = sampled * k / values.size();
  const std::size_t chosen =
      2 * k < values.size() ? std::min(rank + margin, sampled - 1) : rank - std::min(rank, margin);
  const auto pivot = values.begin() + static_cast<std::ptrdiff_t>(partition_below(values, sample[chosen]));
  if (at < pivot)
    std::nth_element(values.begin(), at, pivot);
  else
    std::nth_element(pivot, at, values.end());
}

}  // namespace hone
