#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "hone/base/random.hpp"
#include "hone/base/statistics.hpp"
#include "hone/family/family.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/target/target.hpp"

namespace hone {

/// How estimate_divergence refines and draws.
struct DivergenceConfig {
  std::shared_ptr<const Kernel> kernel = std::make_shared<Hmc>();  ///< the MCMC kernel
  int steps = 3;                                                   ///< t
  double step_size = 0.25;                                         ///< frozen
  int draws = 10000;                                               ///< per component of q; at least 2
  int threads = 1;                                                 ///< results do not depend on it
  std::function<void(double)> watch = {};                          ///< told the share of the work that is done
};

/// Values of the ELBO and the VCD.
struct Divergence {
  Estimate elbo;                        ///< E_q[f], eq. elbo
  Estimate vcd;                         ///< E_q(t)[f] − E_q[f], eq. new_divergence_rearranged, from pairs (z0, z_t)
  double acceptance = 0;                ///< mean acceptance probability
  std::int64_t rejected_nonfinite = 0;  ///< proposals at which the target was not finite
  std::int64_t dropped_draws = 0;       ///< draws outside the support; if any, the values are for q restricted to it
};

/// Estimates ELBO and VCD with random numbers that no training iteration used and a frozen step size. So the kernel
/// leaves the target invariant, and the estimate of the VCD is unbiased. A mixture is stratified over its components.
Divergence estimate_divergence(const Target& target, const Family& family, const DivergenceConfig& config,
                               const RandomSource& random);

/// A step size at which refinements of q's draws are accepted about as often as `config` aims at. It starts from
/// config.step_size and is adapted between refinements; the result is the average of the second half.
double tuned_step_size(const Target& target, const Family& family, const Kernel& kernel, const RefineConfig& config,
                       const RandomSource& random);

}  // namespace hone
