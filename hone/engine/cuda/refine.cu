#include "hone/engine/cuda/refine.cuh"

namespace hone::cuda {
namespace {

constexpr int chains_a_block = 4;  // one warp a chain

struct Here {
  ChainArrays chains;
  int run, chain, lane;
};

__device__ Here here(const ChainArrays& all) {
  const int run = static_cast<int>(blockIdx.y);
  return {all.of(run), run, static_cast<int>(blockIdx.x) * chains_a_block + static_cast<int>(threadIdx.x) / 32,
          static_cast<int>(threadIdx.x) % 32};
}

// β log p(x | z) + log p(z): the sums over tiles, in order, and the prior
__device__ double value_of(const ChainArrays& c, int chain, const double* z, int lane) {
  double prior = 0, likelihood = c.constant ? c.constant[chain] : 0;
  for (int d = lane; d < c.latent; d += 32) prior += log_standard_normal(z[d]);
  prior = warp_sum(prior);
  for (int tile = 0; tile < c.tiles; ++tile) likelihood += c.partial[static_cast<std::size_t>(tile) * c.count + chain];
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
    const double slope = c.beta * static_cast<double>(c.answer[h.chain * c.ld + d]) - z[d];
    c.gradient[h.chain * c.latent + d] = slope;
    finite = finite && isfinite(slope);
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
    const double slope = c.beta * static_cast<double>(c.answer[h.chain * c.ld + d]) - position[d];
    c.slope[i] = slope;
    c.momentum[i] += (index == length ? 0.5 : 1) * epsilon * slope;
    if (index == length) continue;
    c.position[i] += epsilon * c.momentum[i];
    c.input[h.chain * c.ld + d] = static_cast<float>(c.position[i]);
  }
}

constexpr int accept_threads = 1024;

// One block a group of chains.
__global__ void __launch_bounds__(accept_threads)
    accept(ChainArrays all, Numbers numbers, StepSizeArrays sizes, std::uint32_t step, bool adapt) {
  __shared__ int accepted, proposals;
  const int run = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x) % 32;
  const ChainArrays c = all.of(run);
  if (threadIdx.x == 0) accepted = proposals = 0;
  __syncthreads();
  const int begin = static_cast<int>(blockIdx.x) * sizes.group, end = min(begin + sizes.group, c.count);
  const std::uint32_t iteration = numbers.iteration_of(run, c.run);
  for (int chain = begin + static_cast<int>(threadIdx.x) / 32; chain < end; chain += accept_threads / 32) {
    const std::size_t first = static_cast<std::size_t>(chain) * c.latent;
    double kinetic = 0;
    bool finite = true;
    for (int d = lane; d < c.latent; d += 32) {
      kinetic += 0.5 * c.momentum[first + d] * c.momentum[first + d];
      finite = finite && isfinite(c.slope[first + d]);
    }
    kinetic = warp_sum(kinetic);
    finite = __all_sync(0xFFFFFFFFu, finite);
    const double proposed = finite ? c.proposed[chain] : -infinity;
    const std::uint32_t datum = numbers.first_datum + static_cast<std::uint32_t>(chain);
    const double uniform = random_pair(numbers.seed[run], {Purpose::accept, iteration, datum, step}, 0, false).first;
    const double log_ratio = proposed - c.value[chain] + c.energy[chain] - kinetic;
    const Outcome outcome = decide(log_ratio, proposed, c.value[chain], log(uniform));
    const bool moves = outcome == Outcome::accepted;
    __syncwarp();
    for (int d = lane; moves && d < c.latent; d += 32) {
      c.z[first + d] = c.position[first + d];
      c.gradient[first + d] = c.slope[first + d];
    }
    if (lane != 0) continue;
    if (moves) c.value[chain] = proposed;
    c.acceptance[chain] += acceptance_of(outcome, log_ratio);
    c.proposals[chain] += outcome != Outcome::outside;
    c.nonfinite[chain] += outcome == Outcome::nonfinite;
    atomicAdd(&accepted, moves);
    atomicAdd(&proposals, outcome != Outcome::outside);
  }
  __syncthreads();
  if (threadIdx.x != 0 || !adapt || proposals == 0) return;
  double& size = sizes.of(run)[blockIdx.x];
  size = sizes.rule.next(size, static_cast<double>(accepted) / proposals);
}

dim3 grid_of(const ChainArrays& chains, int runs) {
  return {static_cast<unsigned>(ceil_div(chains.count, chains_a_block)), static_cast<unsigned>(runs), 1};
}

}  // namespace

void launch_place(const ChainArrays& chains, int runs, cudaStream_t stream) {
  place<<<grid_of(chains, runs), 32 * chains_a_block, 0, stream>>>(chains);
  check(cudaGetLastError(), "placing chains");
}

void launch_begin(const ChainArrays& chains, int runs, cudaStream_t stream) {
  begin<<<grid_of(chains, runs), 32 * chains_a_block, 0, stream>>>(chains);
  check(cudaGetLastError(), "evaluating draws");
}

void launch_start(const ChainArrays& chains, const Numbers& numbers, const StepSizeArrays& sizes, const HmcShape& shape,
                  std::uint32_t step, int runs, cudaStream_t stream) {
  start<<<grid_of(chains, runs), 32 * chains_a_block, 0, stream>>>(chains, numbers, sizes, shape, step);
  check(cudaGetLastError(), "starting trajectories");
}

void launch_leap(const ChainArrays& chains, const StepSizeArrays& sizes, int index, int runs, cudaStream_t stream) {
  leap<<<grid_of(chains, runs), 32 * chains_a_block, 0, stream>>>(chains, sizes, index);
  check(cudaGetLastError(), "a leapfrog step");
}

void launch_accept(const ChainArrays& chains, const Numbers& numbers, const StepSizeArrays& sizes, std::uint32_t step,
                   bool adapt, int runs, cudaStream_t stream) {
  const dim3 grid(ceil_div(chains.count, sizes.group), runs);
  accept<<<grid, accept_threads, 0, stream>>>(chains, numbers, sizes, step, adapt);
  check(cudaGetLastError(), "accepting proposals");
}

}  // namespace hone::cuda
