#pragma once

#include <cstdint>

#include "hone/base/philox.hpp"
#include "hone/base/scalar.hpp"
#include "hone/engine/cuda/device/launch.cuh"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/mcmc/step_size.hpp"

namespace hone::cuda {

// The formulas of HMC, which all kinds of refinement share; the adaptation is StepSizeRule's.

struct HmcShape {
  int leapfrog, jitter;

  __device__ int length(double uniform) const {  // leapfrog steps of a trajectory
    return jitter == 0 ? leapfrog : jittered(leapfrog, jitter, uniform);
  }
};

__device__ __forceinline__ double kicked(double momentum, double kick, double gradient) {
  return momentum + kick * gradient;
}
// A kick, of half a step size at the start of a trajectory, and a drift.
struct Leap {
  double momentum, position;

  Leap() = default;
  __device__ __forceinline__ Leap(double from, double old_momentum, double gradient, double kick, double step_size)
      : momentum(kicked(old_momentum, kick, gradient)), position(from + step_size * momentum) {}
};
__device__ __forceinline__ double kinetic_energy(double momentum) { return 0.5 * square(momentum); }

// A Metropolis decision, as metropolis() of the cpu engine. `lost`: kinetic energy at the start minus that at the end.
struct Decision {
  double log_ratio;
  Outcome outcome;

  __device__ __forceinline__ Decision(double proposed, double value, double lost, double log_uniform)
      : log_ratio(proposed - value + lost), outcome(decide(proposed, value, log_uniform)) {}
  __device__ bool moves() const { return outcome == Outcome::accepted; }
  __device__ bool counts() const { return outcome != Outcome::outside; }
  __device__ __forceinline__ double acceptance() const {  // its probability, to a float's precision
    const bool known = outcome == Outcome::accepted || outcome == Outcome::rejected;
    return known ? expf(fminf(0.0f, static_cast<float>(log_ratio))) : 0;
  }

 private:
  __device__ __forceinline__ Outcome decide(double proposed, double value, double log_uniform) const {
    if (value == -infinity) return Outcome::outside;
    if (!isfinite(proposed) || isnan(log_ratio)) return Outcome::nonfinite;
    return log_uniform < log_ratio ? Outcome::accepted : Outcome::rejected;
  }
};

__device__ __forceinline__ philox_detail::Pair random_pair(std::uint64_t seed, const Stream& stream_name,
                                                           std::uint32_t block, bool normal) {
  philox_detail::Words counter = philox_detail::first_counter(stream_name);
  counter[0] = block;
  const philox_detail::Words w = philox_detail::rounds(counter, seed);
  const double u = philox_detail::uniform(w[0], w[1]), v = philox_detail::uniform(w[2], w[3]);
  return normal ? philox_detail::BoxMuller()(u, v) : philox_detail::Pair{u, v};
}

// Which random numbers chains use: run r those of seed[r]; chain c those of datum first_datum + c.
struct ChainNumbers {
  const std::uint64_t* seed;
  const std::uint32_t* iteration;  // null: fixed_iteration; else one per run, at the chains' distance
  std::uint32_t fixed_iteration, first_datum;
};

// Chains, with the target's value and gradient at z and at the proposal. Points are doubles, (chains, D); what the
// decoder reads and returns are floats, (chains, ld).
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
  int chains_of_datum = 1;  // one after the other
  const double* constant;   // of log p(x | z), one per datum
  std::size_t run;          // floats from a run to the next
  double beta = 1;          // the target is β log p(x | z) + log p(z)

  // The arrays of run r, from a chain on.
  __device__ ChainArrays of(int r, int chain = 0) const {
    ChainArrays c = *this;
    c.each_array([&](std::size_t width, auto*&... array) { ((array = at(array, r * run) + chain * width), ...); });
    c.partial = at(c.partial, r * run) + chain;
    c.constant = at(c.constant, r * run) + chain / chains_of_datum;
    return c;
  }

  // Takes memory for the chains: (chains, dimensions), (chains, padded), (sums, chains).
  void place(Arena& arena, int chains, int dimensions, int padded, int sums) {
    count = chains;
    latent = dimensions;
    ld = padded;
    parts = sums;
    each_array([&]<class... T>(std::size_t width, T*&... array) { ((array = arena.take<T>(chains * width)), ...); });
    partial = arena.take<float>(static_cast<std::size_t>(chains) * sums);
  }

 private:
#pragma nv_exec_check_disable
  template <class F>  // f(numbers per chain, arrays)
  __host__ __device__ void each_array(F f) {
    f(latent, z, gradient, position, momentum, proposed_gradient);
    f(1, value, proposed, energy, acceptance);
    f(1, length, outcome, proposals, nonfinite);
    f(ld, input, likelihood_gradient);
  }
};

// One chain per warp: its own arrays.
struct WarpChain : WarpRow, ChainArrays {
  explicit __device__ WarpChain(const ChainArrays& all) : WarpRow(this_row()), ChainArrays(all.of(run_index, index)) {}
  __device__ bool exists() const { return index < count; }
  template <class F>  // f(d) for the lane's dimensions
  __device__ void each_dimension(F f) const {
    for (int d = lane; d < latent; d += 32) f(d);
  }
  __device__ philox_detail::Pair random(const ChainNumbers& numbers, Purpose purpose, std::uint32_t step, int block,
                                        bool normal) const {
    const std::uint32_t iteration =
        numbers.iteration ? *at(numbers.iteration, run_index * run) : numbers.fixed_iteration;
    const std::uint32_t datum = numbers.first_datum + static_cast<std::uint32_t>(index);
    return random_pair(numbers.seed[run_index], {purpose, iteration, datum, step}, static_cast<std::uint32_t>(block),
                       normal);
  }
  template <class F>  // f(d, standard normal) for the lane's dimensions
  __device__ void each_normal(const ChainNumbers& numbers, Purpose purpose, std::uint32_t step, F f) const {
    for (int pair = lane; 2 * pair < latent; pair += 32) {
      const auto normal = random(numbers, purpose, step, pair, true);
      f(2 * pair, normal.first);
      if (2 * pair + 1 < latent) f(2 * pair + 1, normal.second);
    }
  }
};

// Step sizes, one per group of chains, and how they follow the acceptance.
struct StepSizeArrays {
  double* step_size;  // one per group
  StepSizeRule rule;
  int group;  // chains
  std::size_t run;

  __device__ double& of(int run_index, int group_index) const { return at(step_size, run_index * run)[group_index]; }
};

}  // namespace hone::cuda
