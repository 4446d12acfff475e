#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "hone/base/statistics.hpp"

namespace hone {

/// A named array of numbers, last index fastest.
struct NamedArray {
  std::string name;                                              ///< the array's name
  std::vector<std::int64_t> shape;                               ///< its dimensions
  std::variant<std::vector<float>, std::vector<double>> values;  ///< its numbers
};

/// Everything that training depends on. An engine of either kind that restores it continues as if training had never
/// stopped.
struct TrainState {
  std::uint32_t iteration = 0;     ///< iterations made so far
  double step_size = 0;            ///< the kernel's step size
  std::vector<NamedArray> arrays;  ///< parameters, the optimizer's moments, control variates
};

/// Statistics over iterations: moments of the means over each minibatch, and counts.
struct TrainMetrics {
  Moments elbo;                         ///< ELBO per datum
  Moments vcd;                          ///< VCD per datum
  Moments acceptance;                   ///< acceptance probability
  std::int64_t rejected_nonfinite = 0;  ///< proposals
  std::int64_t dropped_draws = 0;       ///< z0 outside the support
};

}  // namespace hone
