#include "hone/engine/cuda/train/iteration.cuh"

#include "hone/engine/cuda/encoder/datum.cuh"

namespace hone::cuda {
namespace {

__global__ void draw(Space space) {
  const auto [run, column, lane] = this_row();
  if (column >= space.batch) return;
  for (int d = lane; d < space.latent; d += 32) {
    const int j = column * space.ld_latent + d;
    const Draw answer(space.of(space.raw_mean, run)[j], space.of(space.raw_sd, run)[j],
                      space.of(space.noise, run)[column * space.latent + d]);
    answer.place(space, run, column, d);
    answer.begin_chain(space, run, column, d);
  }
}

__global__ void settle(Space space) {
  const auto [run, column, lane] = this_row();
  if (column >= space.batch) return;
  const ChainArrays chains = space.chains.of(run);
  const bool alive = chains.value[column] != -infinity;
  for (int d = lane; d < space.latent; d += 32) {
    const int i = column * space.latent + d;
    space.of(space.grad_p0, run)[i] = alive ? chains.gradient[i] : 0;
    if (!alive) chains.gradient[i] = 0;
  }
  if (lane != 0) return;
  space.of(space.alive, run)[column] = alive;
  space.of(space.log_p0, run)[column] = alive ? chains.value[column] : 0;
}

__global__ void refined_input(Space space) {
  const int run = static_cast<int>(blockIdx.y), column = static_cast<int>(blockIdx.x);
  const ChainArrays chains = space.chains.of(run);
  const bool alive = space.of(space.alive, run)[column];
  for (int d = threadIdx.x; d < space.latent; d += blockDim.x)
    chains.input[column * space.ld_latent + d] = alive ? static_cast<float>(chains.z[column * space.latent + d]) : 0.0f;
}

__global__ void spread_baselines(Space space) {
  const int run = static_cast<int>(blockIdx.y);
  const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (n >= space.data) return;
  for (int term = 0; term < 2; ++term)
    if (space.baseline[term]) space.of(space.baseline[term], run)[n] = space.of(space.state, run)->shared[term];
}

// From where kernels before have put everything.
__device__ Datum datum_of(const Space& space, const ObjectiveSpec& spec, int run, int column) {
  const ChainArrays chains = space.chains.of(run);
  const std::size_t i = static_cast<std::size_t>(column) * space.latent;
  const int datum = space.of(space.datum, run)[column];  // what is far away is asked for first
  const bool alive = space.of(space.alive, run)[column];
  return {space.of(space.mean, run) + i,
          space.of(space.sd, run) + i,
          space.of(space.noise, run) + i,
          space.of(space.raw_sd, run) + static_cast<std::size_t>(column) * space.ld_latent,
          chains.z + i,
          space.of(space.grad_p0, run) + i,
          alive,
          space.of(space.log_p0, run)[column],
          alive ? chains.value[column] : 0,
          {baseline_of(space, spec, run, 0, datum), baseline_of(space, spec, run, 1, datum)}};
}

__global__ void ascend(Space space, ObjectiveSpec spec) {
  const auto [run, column, lane] = this_row();
  if (column >= space.batch) return;
  const std::size_t at = static_cast<std::size_t>(column) * space.ld_latent;
  float *to_mean = space.of(space.delta_mean, run) + at, *to_sd = space.of(space.delta_sd, run) + at;
  ascend_datum(space, spec, run, column, datum_of(space, spec, run, column), lane, [&](int d, float mean, float sd) {
    to_mean[d] = mean;
    to_sd[d] = sd;
  });
}

}  // namespace

void launch_draw(const Space& space, int runs, cudaStream_t stream) {
  launch(draw, warps_for(space.batch, runs), stream, "drawing", space);
}

void launch_settle(const Space& space, int runs, cudaStream_t stream) {
  launch(settle, warps_for(space.batch, runs), stream, "settling draws", space);
}

void launch_ascend(const Space& space, const ObjectiveSpec& spec, int runs, cudaStream_t stream) {
  launch(ascend, warps_for(space.batch, runs), stream, "the objective", space, spec);
}

void launch_refined_input(const Space& space, int runs, cudaStream_t stream) {
  launch(refined_input, {dim3(space.batch, runs), 64}, stream, "placing refined draws", space);
}

void launch_spread_baselines(const Space& space, int runs, cudaStream_t stream) {
  launch(spread_baselines, threads_for(space.data, runs), stream, "spreading the control variate", space);
}

}  // namespace hone::cuda
