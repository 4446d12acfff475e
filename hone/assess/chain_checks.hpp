#pragma once

#include <span>

#include "hone/assess/refined_draws.hpp"

namespace hone {

// Nested R̂ over the chains from `first` on, super-chains of `per_super`; `mode` says which super-chains are compared.
void judge_starts(const ChainStates& states, int first, int per_super, std::span<const int> mode, ChainChecks& checks);

// Drift between the two blocks, effective draws, BFMI; over all chains of the blocks.
void judge_moments(const ChainStates& before, const ChainStates& now, ChainChecks& checks);

// The largest error of the means of `values` (K, n), of as many chains, in sds. Values that are not finite or do not
// vary are left out.
double largest_error(MatrixView<const double> values, int chains);

// The first `chains` chains of a block, from chain `first` on.
ChainStates some_chains(const ChainStates& states, int first, int chains);

}  // namespace hone
