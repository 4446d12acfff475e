#include "hone/engine/cuda/refinement/products/chains.cuh"

namespace hone::cuda {
namespace {

struct Here {
  ChainArrays chains;
  int run, chain, lane;
};

__device__ Here here(const ChainArrays& all) {
  const WarpRow at = this_row();
  return {all.of(at.run), at.run, at.row, at.lane};
}

// β log p(x | z) + log p(z): the sums over parts, in order, and the prior
__device__ double value_of(const ChainArrays& c, int chain, const double* z, int lane) {
  double prior = 0, likelihood = c.constant ? c.constant[chain] : 0;
  for (int d = lane; d < c.latent; d += 32) prior += log_standard_normal(z[d]);
  prior = warp_sum(prior);
  for (int part = 0; part < c.parts; ++part) likelihood += c.partial[static_cast<std::size_t>(part) * c.count + chain];
  return c.beta * likelihood + prior;
}

__global__ void place(ChainArrays all) {
  const Here h = here(all);
  const ChainArrays& c = h.chains;
  if (h.chain >= c.count) return;
  for (int d = h.lane; d < c.latent; d += 32)
    c.input[h.chain * c.ld + d] = static_cast<float>(c.z[h.chain * c.latent + d]);
}

__global__ void begin(ChainArrays all) {
  const Here h = here(all);
  const ChainArrays& c = h.chains;
  if (h.chain >= c.count) return;
  const double* z = c.z + static_cast<std::size_t>(h.chain) * c.latent;
  bool finite = true;
  for (int d = h.lane; d < c.latent; d += 32) {
    const double gradient = c.beta * static_cast<double>(c.likelihood_gradient[h.chain * c.ld + d]) - z[d];
    c.gradient[h.chain * c.latent + d] = gradient;
    finite = finite && isfinite(gradient);
  }
  const double value = value_of(c, h.chain, z, h.lane);
  finite = __all_sync(0xFFFFFFFFu, finite && isfinite(value));
  if (h.lane != 0) return;
  c.value[h.chain] = finite ? value : -infinity;
  c.acceptance[h.chain] = 0;
  c.proposals[h.chain] = c.nonfinite[h.chain] = 0;
}

__global__ void start(ChainArrays all, Numbers numbers, StepSizeArrays sizes, HmcShape shape, std::uint32_t step) {
  const Here h = here(all);
  const ChainArrays& c = h.chains;
  if (h.chain >= c.count) return;
  const double epsilon = sizes.of(h.run)[h.chain / sizes.group];
  const std::uint32_t iteration = numbers.iteration_of(h.run, c.run);
  const std::uint32_t datum = numbers.first_datum + static_cast<std::uint32_t>(h.chain);
  const std::uint64_t seed = numbers.seed[h.run];
  double energy = 0;
  for (int pair = h.lane; 2 * pair < c.latent; pair += 32) {
    const auto normal =
        random_pair(seed, {Purpose::momentum, iteration, datum, step}, static_cast<std::uint32_t>(pair), true);
    for (int e = 0; e < 2 && 2 * pair + e < c.latent; ++e) {
      const int d = 2 * pair + e;
      const std::size_t i = static_cast<std::size_t>(h.chain) * c.latent + d;
      const double fresh = e == 0 ? normal.first : normal.second;
      energy += 0.5 * fresh * fresh;
      const double p = fresh + 0.5 * epsilon * c.gradient[i];
      const double position = c.z[i] + epsilon * p;
      c.momentum[i] = p;
      c.position[i] = position;
      c.input[h.chain * c.ld + d] = static_cast<float>(position);
    }
  }
  energy = warp_sum(energy);
  if (h.lane != 0) return;
  c.energy[h.chain] = energy;
  c.length[h.chain] = trajectory_length(shape, seed, iteration, datum, step);
}

__global__ void leap(ChainArrays all, StepSizeArrays sizes, int index) {
  const Here h = here(all);
  const ChainArrays& c = h.chains;
  if (h.chain >= c.count) return;
  const int length = c.length[h.chain];
  if (index > length) return;
  const double epsilon = sizes.of(h.run)[h.chain / sizes.group];
  const double* position = c.position + static_cast<std::size_t>(h.chain) * c.latent;
  if (index == length) {
    const double value = value_of(c, h.chain, position, h.lane);
    if (h.lane == 0) c.proposed[h.chain] = value;
  }
  for (int d = h.lane; d < c.latent; d += 32) {
    const std::size_t i = static_cast<std::size_t>(h.chain) * c.latent + d;
    const double gradient = c.beta * static_cast<double>(c.likelihood_gradient[h.chain * c.ld + d]) - position[d];
    c.proposed_gradient[i] = gradient;
    c.momentum[i] += (index == length ? 0.5 : 1) * epsilon * gradient;
    if (index == length) continue;
    c.position[i] += epsilon * c.momentum[i];
    c.input[h.chain * c.ld + d] = static_cast<float>(c.position[i]);
  }
}

__global__ void accept(ChainArrays all, Numbers numbers, std::uint32_t step) {
  const Here h = here(all);
  const ChainArrays& c = h.chains;
  if (h.chain >= c.count) return;
  const std::size_t first = static_cast<std::size_t>(h.chain) * c.latent;
  double kinetic = 0;
  bool finite = true;
  for (int d = h.lane; d < c.latent; d += 32) {
    kinetic += 0.5 * c.momentum[first + d] * c.momentum[first + d];
    finite = finite && isfinite(c.proposed_gradient[first + d]);
  }
  kinetic = warp_sum(kinetic);
  finite = __all_sync(0xFFFFFFFFu, finite);
  const double proposed = finite ? c.proposed[h.chain] : -infinity;
  const std::uint32_t iteration = numbers.iteration_of(h.run, c.run);
  const std::uint32_t datum = numbers.first_datum + static_cast<std::uint32_t>(h.chain);
  const double uniform = random_pair(numbers.seed[h.run], {Purpose::accept, iteration, datum, step}, 0, false).first;
  const double log_ratio = proposed - c.value[h.chain] + c.energy[h.chain] - kinetic;
  const Outcome outcome = decide(log_ratio, proposed, c.value[h.chain], log(uniform));
  const bool moves = outcome == Outcome::accepted;
  __syncwarp();
  for (int d = h.lane; moves && d < c.latent; d += 32) {
    c.z[first + d] = c.position[first + d];
    c.gradient[first + d] = c.proposed_gradient[first + d];
  }
  if (h.lane != 0) return;
  if (moves) c.value[h.chain] = proposed;
  c.acceptance[h.chain] += acceptance_of(outcome, log_ratio);
  c.proposals[h.chain] += outcome != Outcome::outside;
  c.nonfinite[h.chain] += outcome == Outcome::nonfinite;
  c.outcome[h.chain] = static_cast<int>(outcome);
}

constexpr int adapt_threads = 1024;

// One block per group of chains.
__global__ void __launch_bounds__(adapt_threads) adapt(ChainArrays all, StepSizeArrays sizes) {
  __shared__ int accepted, proposals;
  const int run = static_cast<int>(blockIdx.y);
  const ChainArrays c = all.of(run);
  if (threadIdx.x == 0) accepted = proposals = 0;
  __syncthreads();
  const int begin = static_cast<int>(blockIdx.x) * sizes.group, end = min(begin + sizes.group, c.count);
  int moved = 0, proposed = 0;
  for (int chain = begin + static_cast<int>(threadIdx.x); chain < end; chain += adapt_threads) {
    const auto outcome = static_cast<Outcome>(c.outcome[chain]);
    moved += outcome == Outcome::accepted;
    proposed += outcome != Outcome::outside;
  }
  atomicAdd(&accepted, moved);
  atomicAdd(&proposals, proposed);
  __syncthreads();
  if (threadIdx.x != 0 || proposals == 0) return;
  double& size = sizes.of(run)[blockIdx.x];
  size = sizes.rule.next(size, static_cast<double>(accepted) / proposals);
}

}  // namespace

void launch_place(const ChainArrays& chains, int runs, cudaStream_t stream) {
  launch(place, warps_for(chains.count, runs), stream, "placing chains", chains);
}

void launch_begin(const ChainArrays& chains, int runs, cudaStream_t stream) {
  launch(begin, warps_for(chains.count, runs), stream, "evaluating draws", chains);
}

void launch_start(const ChainArrays& chains, const Numbers& numbers, const StepSizeArrays& sizes, const HmcShape& shape,
                  std::uint32_t step, int runs, cudaStream_t stream) {
  launch(start, warps_for(chains.count, runs), stream, "starting trajectories", chains, numbers, sizes, shape, step);
}

void launch_leap(const ChainArrays& chains, const StepSizeArrays& sizes, int index, int runs, cudaStream_t stream) {
  launch(leap, warps_for(chains.count, runs), stream, "a leapfrog step", chains, sizes, index);
}

void launch_accept(const ChainArrays& chains, const Numbers& numbers, const StepSizeArrays& sizes, std::uint32_t step,
                   bool adapts, int runs, cudaStream_t stream) {
  launch(accept, warps_for(chains.count, runs), stream, "accepting proposals", chains, numbers, step);
  if (!adapts) return;
  const Grid groups{dim3(ceil_div(chains.count, sizes.group), runs), adapt_threads};
  launch(adapt, groups, stream, "adapting step sizes", chains, sizes);
}

}  // namespace hone::cuda
