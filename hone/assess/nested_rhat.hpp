#pragma once

#include <span>

#include "hone/base/statistics.hpp"

namespace hone {

// Nested R̂ (Margossian et al. 2024) of one quantity: √(1 + B/W). B is the variance of the means of super-chains,
// groups of `per_super` chains that began at one point; W the variance within a super-chain, between its chains and
// along them. `chain` holds the moments of the quantity along every chain, super-chain after super-chain. At least two
// super-chains; ∞ where nothing varies within them but something between them.
double nested_rhat(std::span<const Moments> chain, int per_super);

}  // namespace hone
