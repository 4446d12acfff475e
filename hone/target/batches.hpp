#pragma once

#include <algorithm>

#include "hone/base/parallel.hpp"
#include "hone/target/target.hpp"

namespace hone {

// Points per call of a target: few enough that a slow model can be stopped between calls, unless it needs more.
inline int batch_size(const Target& target) { return std::max(64, target.good_batch()); }

// target.evaluate, in batches that the team shares out.
inline void evaluate_in_batches(const Target& target, MatrixView<const double> z, Want want, std::span<double> value,
                                MatrixView<double> gradient, Team& team) {
  const int size = batch_size(target);
  team.for_shares(z.cols(), [&](int begin, int end, int) {
    for (int first = begin, last; first < end; first = last) {
      last = std::min(end - first, size) + first;
      target.evaluate(z.columns(first, last), want,
                      wants_value(want)
                          ? value.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first))
                          : std::span<double>(),
                      wants_gradient(want) ? gradient.columns(first, last) : MatrixView<double>());
    }
  });
}

}  // namespace hone
