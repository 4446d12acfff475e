#pragma once

#include <cstdint>

#include "hone/assess/refined_draws.hpp"
#include "hone/fit/posterior_fit.hpp"

namespace hone {

struct StartSeeds {
  std::uint64_t starts, elbo;
};

// Super-chains begin at draws of the starts' own approximations, unless these are far worse than q; the others begin at
// draws of q made half as wide again. At least eight, and two per mode of a mixture. `left_out` counts the starts that
// are far worse than q.
SuperStarts super_starts(const Target& target, const PosteriorFit& fit, const StartSeeds& seeds, int& left_out);

}  // namespace hone
