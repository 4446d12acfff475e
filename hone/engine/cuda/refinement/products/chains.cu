#include "hone/engine/cuda/refinement/products/chains.cuh"

namespace hone::cuda {
namespace {

// β log p(x | z) + log p(z): the sums over parts, in order, and the prior
__device__ double value_of(const WarpChain& c, const double* z) {
  double prior = 0, likelihood = *c.constant;
  c.each_dimension([&](int d) { prior += log_standard_normal(z[d]); });
  prior = warp_sum(prior);
  for (int part = 0; part < c.parts; ++part) likelihood += c.partial[static_cast<std::size_t>(part) * c.count];
  return c.beta * likelihood + prior;
}
__device__ double gradient_of(const WarpChain& c, int d, double z) {
  return c.beta * static_cast<double>(c.likelihood_gradient[d]) - z;
}

__global__ void place(ChainArrays all, const int* alive) {
  const WarpChain c(all);
  if (!c.exists()) return;
  const bool there = !alive || at(alive, c.run_index * c.run)[c.index];
  c.each_dimension([&](int d) { c.input[d] = there ? static_cast<float>(c.z[d]) : 0.0f; });
}

__global__ void begin(ChainArrays all) {
  const WarpChain c(all);
  if (!c.exists()) return;
  bool finite = true;
  c.each_dimension([&](int d) {
    c.gradient[d] = gradient_of(c, d, c.z[d]);
    finite = finite && isfinite(c.gradient[d]);
  });
  const double value = value_of(c, c.z);
  finite = __all_sync(0xFFFFFFFFu, finite && isfinite(value));
  if (c.lane != 0) return;
  *c.value = finite ? value : -infinity;
  *c.acceptance = 0;
  *c.proposals = *c.nonfinite = 0;
}

__device__ void move_to(const WarpChain& c, int d, const Leap& leap) {
  c.momentum[d] = leap.momentum;
  c.position[d] = leap.position;
  c.input[d] = static_cast<float>(leap.position);
}

__global__ void start(ChainArrays all, HmcStep step) {
  const WarpChain c(all);
  if (!c.exists()) return;
  const double epsilon = step.sizes.of(c.run_index, c.index / step.sizes.group);
  double energy = 0;
  c.each_normal(step.numbers, Purpose::momentum, step.index, [&](int d, double momentum) {
    energy += kinetic_energy(momentum);
    move_to(c, d, Leap(c.z[d], momentum, c.gradient[d], 0.5 * epsilon, epsilon));
  });
  energy = warp_sum(energy);
  if (c.lane != 0) return;
  *c.energy = energy;
  *c.length = step.shape.length(c.random(step.numbers, Purpose::leapfrog, step.index, 0, false).first);
}

__global__ void leap(ChainArrays all, HmcStep step, int index) {
  const WarpChain c(all);
  if (!c.exists() || index > *c.length) return;
  const double epsilon = step.sizes.of(c.run_index, c.index / step.sizes.group);
  const bool last = index == *c.length;
  if (last) {
    const double value = value_of(c, c.position);
    if (c.lane == 0) *c.proposed = value;
  }
  c.each_dimension([&](int d) {
    const double gradient = gradient_of(c, d, c.position[d]);
    c.proposed_gradient[d] = gradient;
    if (last)
      c.momentum[d] = kicked(c.momentum[d], 0.5 * epsilon, gradient);
    else
      move_to(c, d, Leap(c.position[d], c.momentum[d], gradient, epsilon, epsilon));
  });
}

__global__ void accept(ChainArrays all, HmcStep step) {
  const WarpChain c(all);
  if (!c.exists()) return;
  double kinetic = 0;
  bool finite = true;
  c.each_dimension([&](int d) {
    kinetic += kinetic_energy(c.momentum[d]);
    finite = finite && isfinite(c.proposed_gradient[d]);
  });
  kinetic = warp_sum(kinetic);
  finite = __all_sync(0xFFFFFFFFu, finite);
  const double proposed = finite ? *c.proposed : -infinity;
  const double uniform = c.random(step.numbers, Purpose::accept, step.index, 0, false).first;
  const Decision decision(proposed, *c.value, *c.energy - kinetic, log(uniform));
  __syncwarp();
  c.each_dimension([&](int d) {
    if (!decision.moves()) return;
    c.z[d] = c.position[d];
    c.gradient[d] = c.proposed_gradient[d];
  });
  if (c.lane != 0) return;
  if (decision.moves()) *c.value = proposed;
  *c.acceptance += decision.acceptance();
  *c.proposals += decision.counts();
  *c.nonfinite += decision.outcome == Outcome::nonfinite;
  *c.outcome = static_cast<int>(decision.outcome);
}

constexpr int adapt_threads = 1024;

// One block per group of chains.
__global__ void __launch_bounds__(adapt_threads) adapt(ChainArrays all, StepSizeArrays sizes) {
  const int run = static_cast<int>(blockIdx.y), begin = static_cast<int>(blockIdx.x) * sizes.group,
            end = min(begin + sizes.group, all.count);
  const int* outcome = all.of(run).outcome;
  int accepted = 0, proposals = 0;
  for (int first = begin; first < end; first += adapt_threads) {
    const int chain = first + this_thread();
    const Outcome mine = chain < end ? static_cast<Outcome>(outcome[chain]) : Outcome::outside;
    accepted += __syncthreads_count(mine == Outcome::accepted);
    proposals += __syncthreads_count(mine != Outcome::outside);
  }
  if (threadIdx.x != 0 || proposals == 0) return;
  double& size = sizes.of(run, static_cast<int>(blockIdx.x));
  size = sizes.rule.next(size, static_cast<double>(accepted) / proposals);
}

}  // namespace

void launch_place(const ChainArrays& chains, const int* alive, int runs, cudaStream_t stream) {
  launch(place, warps_for(chains.count, runs), stream, "placing chains", chains, alive);
}

void launch_begin(const ChainArrays& chains, int runs, cudaStream_t stream) {
  launch(begin, warps_for(chains.count, runs), stream, "evaluating draws", chains);
}

void launch_step(const ChainArrays& chains, const HmcStep& step, int runs, cudaStream_t stream,
                 const std::function<void(bool)>& gradient) {
  const Grid warps = warps_for(chains.count, runs);
  launch(start, warps, stream, "starting trajectories", chains, step);
  for (int index = 1; index <= step.shape.leapfrog + step.shape.jitter; ++index) {
    gradient(index >= step.shape.leapfrog - step.shape.jitter);
    launch(leap, warps, stream, "a leapfrog step", chains, step, index);
  }
  launch(accept, warps, stream, "accepting proposals", chains, step);
  if (step.adapts) launch_adapt(chains, step.sizes, runs, stream);
}

void launch_adapt(const ChainArrays& chains, const StepSizeArrays& sizes, int runs, cudaStream_t stream) {
  const Grid groups{dim3(ceil_div(chains.count, sizes.group), runs), adapt_threads};
  launch(adapt, groups, stream, "adapting step sizes", chains, sizes);
}

}  // namespace hone::cuda
