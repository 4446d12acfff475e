#pragma once

#include <cstdint>

#include "hone/base/philox.hpp"
#include "hone/engine/cuda/network.cuh"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/refine.hpp"

namespace hone::cuda {

// Which random numbers chains use: run r those of seed[r]; chain c those of datum first_datum + c.
struct Numbers {
  const std::uint64_t* seed;
  const std::uint32_t* iteration;  // null: fixed_iteration; else one a run, `run` floats apart
  std::uint32_t fixed_iteration, first_datum;

  __device__ std::uint32_t iteration_of(int run, std::size_t stride) const {
    return iteration ? *at(iteration, run * stride) : fixed_iteration;
  }
};

// Chains, with the target's value and gradient where they stand and where they may go. Points are doubles, (chains, D);
// what the decoder reads and answers are floats, (chains, ld).
struct ChainArrays {
  int count, latent, ld;
  double *z, *value, *gradient;
  double *position, *momentum, *slope, *proposed, *energy;
  double* acceptance;          // sums of the acceptance probabilities
  int *length, *outcome;       // of this trajectory: leapfrog steps, and whether it is accepted (Outcome)
  int *proposals, *nonfinite;  // sums over the refinement
  float *input, *answer;       // a point, and ∇ log p(x | z) there
  const float* partial;        // (parts, chains) of log p(x | z)
  int parts;
  const double* constant;  // of log p(x | z); null: 0
  std::size_t run;         // floats from a run to the next
  double beta = 1;         // the target is β log p(x | z) + log p(z)

  __device__ ChainArrays of(int r) const {
    ChainArrays c = *this;
    const std::size_t floats = r * run;
    for (double** p :
         {&c.z, &c.value, &c.gradient, &c.position, &c.momentum, &c.slope, &c.proposed, &c.energy, &c.acceptance})
      *p = at(*p, floats);
    for (int** p : {&c.length, &c.outcome, &c.proposals, &c.nonfinite}) *p = at(*p, floats);
    c.input += floats;
    c.answer += floats;
    c.partial += floats;
    if (c.constant) c.constant = at(c.constant, floats);
    return c;
  }
};

// Step sizes, one a group of chains, and how they follow the acceptance.
struct StepSizeArrays {
  double* step_size;  // one a group
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

__device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, offset);
  return x;
}

// Several sums at a time, in little code.
template <int count>
__device__ __forceinline__ void warp_sums(double (&x)[count]) {
#pragma unroll 1
  for (int offset = 16; offset > 0; offset /= 2)
#pragma unroll
    for (double& s : x) s += __shfl_xor_sync(0xFFFFFFFFu, s, offset);
}

// Two sums at a time, for the first lanes alone where the others have 0; `lanes` = 0: all.
template <int lanes>
__device__ __forceinline__ void sum_lanes(double& a, double& b) {
#pragma unroll
  for (int offset = lanes > 0 && lanes <= 16 ? 8 : 16; offset > 0; offset /= 2) {
    const double c = __shfl_xor_sync(0xFFFFFFFFu, a, offset), d = __shfl_xor_sync(0xFFFFFFFFu, b, offset);
    a += c;
    b += d;
  }
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

// Launches of the general path. Every chain's momenta and first drift; after a gradient at `input`, the next kick and
// drift; after the last one the Metropolis step.
void launch_place(const ChainArrays& chains, int runs, cudaStream_t stream);  // z → input
void launch_begin(const ChainArrays& chains, int runs, cudaStream_t stream);  // answer at z → value, gradient
void launch_start(const ChainArrays& chains, const Numbers& numbers, const StepSizeArrays& sizes, const HmcShape& shape,
                  std::uint32_t step, int runs, cudaStream_t stream);
void launch_leap(const ChainArrays& chains, const StepSizeArrays& sizes, int leap, int runs, cudaStream_t stream);
void launch_accept(const ChainArrays& chains, const Numbers& numbers, const StepSizeArrays& sizes, std::uint32_t step,
                   bool adapts, int runs, cudaStream_t stream);

}  // namespace hone::cuda
