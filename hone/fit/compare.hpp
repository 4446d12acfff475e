#pragma once

#include <cstdint>

#include "hone/fit/checked_fit.hpp"

namespace hone {

// Compares q with the refined draws: fills in the weights, densities and findings of a fit, all but those of values on
// the natural scale.
void compare_with_q(const Posterior& posterior, const CheckedFitConfig& config, std::uint64_t seed, CheckedFit& result);

}  // namespace hone
