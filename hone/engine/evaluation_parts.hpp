#pragma once

#include <math.h>

#include "hone/base/clones.hpp"
#include "hone/base/scalar.hpp"
#include "hone/engine/evaluation.hpp"

// The parts of an evaluation that both engines share.
namespace hone {

// Σ exp(w) and Σ exp(2 w) of log weights, relative to the largest.
struct WeightSums {
  double top, sum, squares;

  HONE_INLINE static WeightSums of(double log_weight) {
    return log_weight == -infinity ? WeightSums{-infinity, 0, 0} : WeightSums{log_weight, 1, 1};
  }
  HONE_INLINE void add(const WeightSums& other) {
    if (other.sum == 0) return;
    const double higher = fmax(top, other.top), mine = sum == 0 ? 0 : exp(top - higher),
                 theirs = exp(other.top - higher);
    sum = sum * mine + other.sum * theirs;
    squares = squares * mine * mine + other.squares * theirs * theirs;
    top = higher;
  }
  ImportanceEstimate estimate(double draws) const;
};

constexpr int pilot_draws(int samples) { return samples < 20 ? 1 : samples / 10; }

// A proposal's estimates: by all of its draws, by the pilot draws, which come first, and by the rest.
struct ProposalEstimates {
  ImportanceEstimate all;
  double pilot, rest;
};
// A datum's estimates from those of the proposals in use.
PointEvaluation combine(const std::array<std::optional<ProposalEstimates>, proposal_count>& proposals,
                        const ImportanceEstimate& mixture);

}  // namespace hone
