#pragma once

#include <cstdint>

#include "hone/base/philox.hpp"
#include "hone/base/scalar.hpp"
#include "hone/engine/cuda/device/warp.cuh"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/mcmc/step_size.hpp"

namespace hone::cuda {

// Which random numbers chains use: run r those of seed[r]; chain c those of datum first_datum + c.
struct Numbers {
  const std::uint64_t* seed;
  const std::uint32_t* iteration;  // null: fixed_iteration; else one per run, `run` floats apart
  std::uint32_t fixed_iteration, first_datum;

  __device__ std::uint32_t iteration_of(int run, std::size_t stride) const {
    return iteration ? *at(iteration, run * stride) : fixed_iteration;
  }
};

// Chains, with the target's value and gradient where they stand and where they may go. Points are doubles, (chains, D);
// what the decoder reads and returns are floats, (chains, ld).
struct ChainArrays {
  int count, latent, ld;
  double *z, *value, *gradient;
  double *position, *momentum, *proposed_gradient, *proposed, *energy;
  double* acceptance;                  // sums of the acceptance probabilities
  int *length, *outcome;               // of this trajectory: leapfrog steps, and whether it is accepted (Outcome)
  int *proposals, *nonfinite;          // sums over the refinement
  float *input, *likelihood_gradient;  // a point, and ∇ log p(x | z) there
  float* partial;                      // (parts, chains) of log p(x | z)
  int parts;
  const double* constant;  // of log p(x | z); null: 0
  std::size_t run;         // floats from a run to the next
  double beta = 1;         // the target is β log p(x | z) + log p(z)

  // The arrays of run r.
  __device__ ChainArrays of(int r) const {
    ChainArrays c = *this;
    c.each_array([&](std::size_t, auto*&... array) { ((array = at(array, r * run)), ...); });
    if (c.constant) c.constant = at(c.constant, r * run);
    return c;
  }

  // Takes memory for so many chains: (chains, dimensions), (chains, padded), (sums, chains).
  void place(Arena& arena, int chains, int dimensions, int padded, int sums) {
    count = chains;
    latent = dimensions;
    ld = padded;
    parts = sums;
    each_array([&]<class... T>(std::size_t size, T*&... array) { ((array = arena.take<T>(size)), ...); });
  }

 private:
#pragma nv_exec_check_disable
  template <class F>  // f(size, arrays of that size)
  __host__ __device__ void each_array(F f) {
    const std::size_t chains = count;
    f(chains * latent, z, gradient, position, momentum, proposed_gradient);
    f(chains, value, proposed, energy, acceptance);
    f(chains, length, outcome, proposals, nonfinite);
    f(chains * ld, input, likelihood_gradient);
    f(chains * parts, partial);
  }
};

// Step sizes, one per group of chains, and how they follow the acceptance.
struct StepSizeArrays {
  double* step_size;  // one per group
  StepSizeRule rule;
  int group;  // chains
  std::size_t run;

  __device__ double* of(int run_index) const { return at(step_size, run_index * run); }
};

__device__ __forceinline__ philox_detail::Pair random_pair(std::uint64_t seed, const Stream& stream_name,
                                                           std::uint32_t block, bool normal) {
  philox_detail::Words counter = philox_detail::first_counter(stream_name);
  counter[0] = block;
  const philox_detail::Words w = philox_detail::rounds(counter, seed);
  const double u = philox_detail::uniform(w[0], w[1]), v = philox_detail::uniform(w[2], w[3]);
  return normal ? philox_detail::BoxMuller()(u, v) : philox_detail::Pair{u, v};
}

// A Metropolis decision and its probability, as metropolis() of the cpu engine; the latter to a float's precision.
__device__ __forceinline__ Outcome decide(double log_ratio, double proposed, double value, double log_uniform) {
  if (value == -infinity) return Outcome::outside;
  if (!isfinite(proposed) || isnan(log_ratio)) return Outcome::nonfinite;
  return log_uniform < log_ratio ? Outcome::accepted : Outcome::rejected;
}
__device__ __forceinline__ double acceptance_of(Outcome outcome, double log_ratio) {
  const bool known = outcome == Outcome::accepted || outcome == Outcome::rejected;
  return known ? expf(fminf(0.0f, static_cast<float>(log_ratio))) : 0;
}

struct HmcShape {
  int leapfrog, jitter;
};
// Leapfrog steps of a chain's trajectory.
__device__ __forceinline__ int trajectory_length(const HmcShape& shape, std::uint64_t seed, std::uint32_t iteration,
                                                 std::uint32_t datum, std::uint32_t step) {
  if (shape.jitter == 0) return shape.leapfrog;
  return jittered(shape.leapfrog, shape.jitter,
                  random_pair(seed, {Purpose::leapfrog, iteration, datum, step}, 0, false).first);
}

}  // namespace hone::cuda
