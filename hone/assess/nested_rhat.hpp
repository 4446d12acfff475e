#pragma once

#include <span>

#include "hone/base/statistics.hpp"

namespace hone {

// Nested R̂ (Margossian et al. 2024) of one quantity: √(1 + B/W). B is the variance of the means of super-chains,
// groups of `per_super` chains that started at the same point; W is the variance within a super-chain, between its
// chains and along them. `chain` holds the moments of the quantity along every chain, super-chain after super-chain.
// There must be at least two super-chains. ∞ if the quantity varies between super-chains but not within them.
double nested_rhat(std::span<const Moments> chain, int per_super);

}  // namespace hone
