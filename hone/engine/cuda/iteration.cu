#include "hone/engine/cuda/datum.cuh"

namespace hone::cuda {
namespace {

constexpr int data_a_block = 4;  // one warp a datum

__global__ void draw(Space space) {
  const int run = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(blockIdx.x) * data_a_block + static_cast<int>(threadIdx.x) / 32;
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
  const int run = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(blockIdx.x) * data_a_block + static_cast<int>(threadIdx.x) / 32;
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

__global__ void ascend(Space space, ObjectiveSpec spec) {
  const int run = static_cast<int>(blockIdx.y), lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(blockIdx.x) * data_a_block + static_cast<int>(threadIdx.x) / 32;
  if (column >= space.batch) return;
  const std::size_t at = static_cast<std::size_t>(column) * space.ld_latent;
  float *to_mean = space.of(space.delta_mean, run) + at, *to_sd = space.of(space.delta_sd, run) + at;
  ascend_datum(space, spec, run, column, datum_of(space, spec, run, column), lane, true,
               [&](int d, float mean, float sd) {
                 to_mean[d] = mean;
                 to_sd[d] = sd;
               });
}

dim3 grid_of(const Space& space, int runs) {
  return {static_cast<unsigned>(ceil_div(space.batch, data_a_block)), static_cast<unsigned>(runs), 1};
}

}  // namespace

Space Space::of_slot(int index) const {
  Space space = *this;
  const std::size_t floats = index * slot;
  const auto move = [&](auto*&... pointers) { ((pointers = at(pointers, floats)), ...); };
  move(space.now, space.x, space.datum, space.following, space.constant, space.noise, space.meeting,
       space.drawn_momentum, space.drawn_log_uniform, space.drawn_length);
  space.chains.constant = space.constant;
  return space;
}

void launch_draw(const Space& space, int runs, cudaStream_t stream) {
  draw<<<grid_of(space, runs), 32 * data_a_block, 0, stream>>>(space);
  check(cudaGetLastError(), "drawing");
}

void launch_settle(const Space& space, int runs, cudaStream_t stream) {
  settle<<<grid_of(space, runs), 32 * data_a_block, 0, stream>>>(space);
  check(cudaGetLastError(), "settling draws");
}

void launch_ascend(const Space& space, const ObjectiveSpec& spec, int runs, cudaStream_t stream) {
  ascend<<<grid_of(space, runs), 32 * data_a_block, 0, stream>>>(space, spec);
  check(cudaGetLastError(), "the objective");
}

void launch_refined_input(const Space& space, int runs, cudaStream_t stream) {
  refined_input<<<dim3(space.batch, runs), 64, 0, stream>>>(space);
  check(cudaGetLastError(), "placing refined draws");
}

void launch_spread_baselines(const Space& space, int runs, cudaStream_t stream) {
  spread_baselines<<<dim3(ceil_div(space.data, 256), runs), 256, 0, stream>>>(space);
  check(cudaGetLastError(), "spreading the control variate");
}

}  // namespace hone::cuda
