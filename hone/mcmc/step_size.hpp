#pragma once

#include "hone/base/clones.hpp"

namespace hone {

// ε ← ε (1 + gain (a − a*) / a*), kept within a factor of 10⁶ of where it started: on both engines
struct StepSizeRule {
  double start = 0, target = 0;  // ε at the beginning, a*
  double pull = 0;               // gain / a*: divided once, since a device waits for divisions

  StepSizeRule() = default;  // where step sizes do not follow
  StepSizeRule(double step_size, double acceptance, double gain)
      : start(step_size), target(acceptance), pull(gain / acceptance) {}

  HONE_INLINE double next(double step_size, double acceptance) const {
    const double moved = step_size * (1 + pull * (acceptance - target));
    const double least = 1e-6 * start, most = 1e6 * start;
    return moved < least ? least : most < moved ? most : moved;
  }
};

// Leapfrog steps of a trajectory, uniform on leapfrog − jitter … leapfrog + jitter: on both engines.
HONE_INLINE int jittered(int leapfrog, int jitter, double uniform) {
  return leapfrog - jitter + static_cast<int>(uniform * (2 * jitter + 1));
}

}  // namespace hone
