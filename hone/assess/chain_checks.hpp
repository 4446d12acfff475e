#pragma once

#include <span>
#include <vector>

#include "hone/assess/refined_draws.hpp"

namespace hone {

// Nested R̂ over the chains from `first` on, super-chains of `per_super`; `mode` says which super-chains are compared.
void judge_starts(const ChainStates& states, int first, int per_super, std::span<const int> mode, ChainChecks& checks);

// Drift between the two blocks, effective draws, BFMI; over all chains of the blocks.
void judge_moments(const ChainStates& before, const ChainStates& now, ChainChecks& checks);

// Both checks where q has several modes, of the states minus the means of their components: chains need not leave their
// modes, though some do. The first `pairs` chains are those that started at draws of q.
void judge_within_modes(const Family& family, ChainStates before, ChainStates now, int pairs, int per_super,
                        std::span<const int> mode, ChainChecks& checks);

// Draws of q, and the states of the chains that started at the first `count` of them.
struct Pairs {
  MatrixView<const double> z0;
  std::span<const double> log_p0;
  MatrixView<const double> zt;
  std::span<const double> log_pt;
  std::span<const int> component;  // of q, that each draw is from
  int components;
  int count;
};

// Correlations of z0 and z_t about the means of the draws' components, since chains need not leave their mode.
void judge_memory(const Pairs& pairs, ChainChecks& checks);

// The largest standard errors, in sds: of the means of all `values` (K, n), and of the sds of the first `parameters` of
// them. The sds of the others do not count: few draws cannot show the sd of a rare event. Values that are not finite or
// do not vary are left out, and sds of values with heavy tails, for which quantiles are better.
struct LargestErrors {
  double mean = 0, sd = 0;
  int sd_value = -1;  // the value whose sd it is
};
LargestErrors largest_errors(MatrixView<const double> values, int chains, int parameters);

// Nested R̂, chance removed, of values (K, n) at the states: over groups of `per_super` chains, the last ones whole. NaN
// for values that are not finite.
std::vector<double> value_rhats(MatrixView<const double> values, const ChainStates& states, int per_super);

// The first `chains` chains of a block, from chain `first` on.
ChainStates some_chains(const ChainStates& states, int first, int chains);

}  // namespace hone
