#pragma once

#include <span>

#include "hone/base/statistics.hpp"

namespace hone {

// The variances behind nested R̂ (Margossian et al. 2024) of one quantity. A super-chain is a group of chains that
// started at the same point.
struct NestedVariances {
  double between = 0;  // B, of the means of super-chains
  double within = 0;   // W, within a super-chain: between its chains and along them
  double chance = 0;   // what B would be if all chains were alike: the variance of a super-chain's mean
  int super_chains = 0;
  double rhat() const;    // √(1 + B/W); ∞ if the quantity varies between super-chains but not within them
  double excess() const;  // (B − chance) / W; ∞ likewise
};

// `chain` holds the moments of the quantity along every chain, super-chain after super-chain of `per_super` chains.
// There must be at least two super-chains.
NestedVariances nested_variances(std::span<const Moments> chain, int per_super);

inline double nested_rhat(std::span<const Moments> chain, int per_super) {
  return nested_variances(chain, per_super).rhat();
}

// The limit of between / chance: the largest of `quantities` quantities exceeds it by chance in at most one of fifty
// runs. A quantile of the F distribution, which the ratio follows where chains are alike.
double most_spread(int super_chains, int per_super, int quantities);

}  // namespace hone
