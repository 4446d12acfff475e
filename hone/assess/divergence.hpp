#pragma once

#include <cstdint>

#include "hone/base/random.hpp"
#include "hone/base/statistics.hpp"
#include "hone/family/family.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/target/target.hpp"

namespace hone {

struct DivergenceConfig {
  KernelConfig kernel;
  int steps = 3;            // t
  double step_size = 0.25;  // frozen
  int draws = 10000;        // of every component of q; at least 2
  int threads = 1;
};

struct Divergence {
  Estimate elbo;  // E_q[f], eq. elbo
  Estimate vcd;   // E_q(t)[f] − E_q[f], eq. new_divergence_rearranged, from pairs (z0, z_t)
  double acceptance = 0;
  std::int64_t rejected_nonfinite = 0;
  std::int64_t dropped_draws = 0;  // draws of q outside the support: if any, the values are those of q restricted to it
};

// Estimates the values afresh, with random numbers that no training iteration used and a frozen step size, so that the
// kernel is invariant and the estimate of the VCD has no bias. A mixture is stratified over its components.
Divergence estimate_divergence(const Target& target, const Family& family, const DivergenceConfig& config,
                               const RandomSource& random);

// A step size under which refinements of q's own draws are accepted about as often as `config` aims at, for a q that
// was fitted without refining: adapted between refinements, from config.step_size.
double tuned_step_size(const Target& target, const Family& family, const KernelConfig& kernel,
                       const RefineConfig& config, const RandomSource& random);

}  // namespace hone
