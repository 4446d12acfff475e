#include "hone/engine/cuda/learn.cuh"

namespace hone::cuda {
namespace {

using WeightTile = Tile<64, 64, 32, 16, 32, 4>;
static_assert(WeightTile::threads >= 64);  // of which `learn` gives 32 away
constexpr int bias_columns = 32, bias_parts = WeightTile::threads / bias_columns;

// θ ← θ + step(gradient), element by element: as hone/optim/optimizer.hpp
struct Step {
  float *theta, *first, *second;
  float rate;
  RunState* state;
  std::uint32_t iteration;
  AdamCorrection correction;

  template <OptimizerKind optimizer>
  __device__ void move(float& at, float gradient, float& one, float& two) const {
    at += optimizer == OptimizerKind::rmsprop ? rmsprop_step(rate, gradient, iteration == 1, two)
                                              : adam_step(rate, gradient, correction, one, two);
  }
  __device__ void check(bool finite) const {
    if (!finite) atomicCAS(&state->bad, 0u, iteration);
  }
};

// Keeps a tile of sums where the whole block can read it, and zeros where it reaches beyond the matrix.
struct Kept {
  static constexpr bool sums_rows = false;
  using Everywhere = void;
  float* tile;
  int m0, n0;
  static constexpr int stride = WeightTile::n + 4;

  __device__ float* row(int m) const { return tile + (m - m0) * stride; }
  __device__ void operator()(float* to, int n, float c) const { to[n - n0] = c; }
  template <class F>
  __device__ __forceinline__ void chosen(F f) const {
    f(*this);
  }
};

// Four neighbours at a time, and all of a thread's loads before its stores. What pads a row has no gradient and stays 0.
template <OptimizerKind optimizer>
__device__ void update_tile(const UpdateTask& task, const float* tile, const Step& step) {
  constexpr int quads = WeightTile::n / 4, each = WeightTile::m * quads / WeightTile::threads;
  const auto place = [&](int i) {
    const int index = i * WeightTile::threads + static_cast<int>(threadIdx.x), row = task.row0 + index / quads;
    const int col = task.col0 + 4 * (index % quads);
    return row < task.rows && col < task.ld ? static_cast<std::ptrdiff_t>(row) * task.ld + col : std::ptrdiff_t{-1};
  };
  const auto read = [](const float* from, std::ptrdiff_t at) { return *reinterpret_cast<const float4*>(from + at); };
  float4 theta[each], first[each] = {}, second[each];
#pragma unroll
  for (int i = 0; i < each; ++i)
    if (const std::ptrdiff_t at = place(i); at >= 0) {
      theta[i] = read(step.theta, at);
      second[i] = read(step.second, at);
      if constexpr (optimizer == OptimizerKind::adam) first[i] = read(step.first, at);
    }
  bool finite = true;
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const std::ptrdiff_t at = place(i);
    if (at < 0) continue;
    const int index = i * WeightTile::threads + static_cast<int>(threadIdx.x);
    const float4 gradient = *reinterpret_cast<const float4*>(tile + index / quads * Kept::stride + 4 * (index % quads));
    step.move<optimizer>(theta[i].x, gradient.x, first[i].x, second[i].x);
    step.move<optimizer>(theta[i].y, gradient.y, first[i].y, second[i].y);
    step.move<optimizer>(theta[i].z, gradient.z, first[i].z, second[i].z);
    step.move<optimizer>(theta[i].w, gradient.w, first[i].w, second[i].w);
    finite = finite && isfinite(theta[i].x) && isfinite(theta[i].y) && isfinite(theta[i].z) && isfinite(theta[i].w);
    *reinterpret_cast<float4*>(step.theta + at) = theta[i];
    *reinterpret_cast<float4*>(step.second + at) = second[i];
    if constexpr (optimizer == OptimizerKind::adam) *reinterpret_cast<float4*>(step.first + at) = first[i];
  }
  step.check(finite);
}

// Sums of deltas over the batch, in an order of their own that is always the same.
template <OptimizerKind optimizer>
__device__ void update_biases(const UpdateTask& task, const float* dy, int batch, float* shared, const Step& step) {
  const int column = static_cast<int>(threadIdx.x) % bias_columns, part = static_cast<int>(threadIdx.x) / bias_columns;
  const int n = task.col0 + column;
  float sum = 0;
  if (n < task.cols)
    for (int row = part; row < batch; row += bias_parts) sum += dy[static_cast<std::size_t>(row) * task.lddy + n];
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (part != 0 || n >= task.cols) return;
  sum = 0;
  for (int p = 0; p < bias_parts; ++p) sum += shared[p * bias_columns + column];
  float none = 0;
  step.move<optimizer>(step.theta[n], sum, step.first ? step.first[n] : none, step.second[n]);
  step.check(isfinite(step.theta[n]));
}

template <Math math, OptimizerKind optimizer>
__global__ void __launch_bounds__(WeightTile::threads)
    update(const __grid_constant__ Space space, const __grid_constant__ UpdateSpec spec) {
  extern __shared__ __align__(16) float shared[];
  const int run = static_cast<int>(blockIdx.y);
  if (blockIdx.x == 0) {  // it takes long and starts first
    learn(space, spec.objective, run, reinterpret_cast<int*>(shared), Shares<WeightTile, Along::m, Along::n>::floats);
    return;
  }
  const UpdateTask task = spec.tasks[blockIdx.x - 1];
  const std::size_t floats = run * space.stride;
  RunState* state = space.of(space.state, run);
  const std::size_t at = floats + task.parameter;
  const Step step = {space.parameters + at,
                     space.first ? space.first + at : nullptr,
                     space.second + at,
                     static_cast<float>(state->rate_factor * task.rate),
                     state,
                     state->iteration,
                     AdamCorrection(state->adam[0], state->adam[1])};
  if (task.rows == 0) {
    update_biases<optimizer>(task, task.dy + floats, space.batch, shared, step);
    return;
  }
  const Product product = {task.x + floats, task.dy + floats, task.ldx, task.lddy, task.rows, task.cols, space.batch};
  multiply_tile<WeightTile, Along::m, Along::n, math>(product, task.row0, task.col0, shared,
                                                      Kept{shared, task.row0, task.col0});
  __syncthreads();
  update_tile<optimizer>(task, shared, step);
}

template <Math math, OptimizerKind optimizer>
void launch(const Space& space, const UpdateSpec& spec, int runs, cudaStream_t stream) {
  using S = Shares<WeightTile, Along::m, Along::n>;
  static_assert(S::floats >= WeightTile::m * Kept::stride);  // the tile lies where its operands lay
  allow_shared_memory<update<math, optimizer>, S::bytes>();
  update<math, optimizer><<<dim3(spec.count + 1, runs), WeightTile::threads, S::bytes, stream>>>(space, spec);
  check(cudaGetLastError(), "updating the parameters");
}

}  // namespace

std::vector<UpdateTask> update_tasks(const Net& net, const Tape& tape, double rate) {
  std::vector<UpdateTask> tasks;
  for (int l = 0; l < net.depth; ++l) {
    const Layer& layer = net.layer[l];
    UpdateTask task = {l == 0 ? tape.input : tape.value[l - 1],
                       tape.delta[l],
                       layer.weight,
                       l == 0 ? tape.ld_input : net.layer[l - 1].ld,
                       layer.ld,
                       layer.ld,
                       layer.inputs,
                       layer.outputs,
                       0,
                       0,
                       rate};
    for (task.row0 = 0; task.row0 < layer.inputs; task.row0 += WeightTile::m)
      for (task.col0 = 0; task.col0 < layer.outputs; task.col0 += WeightTile::n) tasks.push_back(task);
    if (!layer.has_bias) continue;
    task.rows = task.row0 = 0;
    task.parameter = layer.bias;
    for (task.col0 = 0; task.col0 < layer.outputs; task.col0 += bias_columns) tasks.push_back(task);
  }
  return tasks;
}

void launch_update(const Space& space, const UpdateSpec& spec, int runs, cudaStream_t stream) {
  const auto launch_as = [&]<OptimizerKind optimizer>() {
    spec.math == Math::tf32 ? launch<Math::tf32, optimizer>(space, spec, runs, stream)
                            : launch<Math::fp32, optimizer>(space, spec, runs, stream);
  };
  spec.optimizer == OptimizerKind::rmsprop ? launch_as.template operator()<OptimizerKind::rmsprop>()
                                           : launch_as.template operator()<OptimizerKind::adam>();
}

}  // namespace hone::cuda
