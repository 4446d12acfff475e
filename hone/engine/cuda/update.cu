#include "hone/engine/cuda/learn.cuh"

namespace hone::cuda {
namespace {

// A tile of a matrix of weights is a block's, and a part of it a warp's. What comes for it lies in shared memory: of
// what the layer read and of its deltas so many rows of the batch at a time, as (row, unit), and θ with second moments.
// Fetching instructions takes about as long as running them, so that hardly a loop is unrolled.
constexpr int side = 64, rows_at_once = 104, warp_m = 16, warp_n = 32, block_threads = 256;
constexpr int stride = side + 8;  // of operands: a fragment touches every bank once
static_assert(block_threads == 32 * (side / warp_m) * (side / warp_n) && rows_at_once % 8 == 0);
constexpr int bias_columns = 32, bias_parts = block_threads / bias_columns;

constexpr int shared_floats = 2 * rows_at_once * stride + 2 * side * side;
static_assert(4 * shared_floats <= 99 * 1024);  // what all devices have

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

// A tile's rows of a matrix (rows, ld), or of a batch, to shared memory: there after `wait_copies`. Outside there is 0.
__device__ __forceinline__ void copy_tile(float* to, int to_stride, const float* from, int ld, int row0, int rows,
                                          int count, int col) {
  constexpr int chunks = side / 4;
  const int chunk = 4 * (static_cast<int>(threadIdx.x) % chunks);
#pragma unroll 1
  for (int r = static_cast<int>(threadIdx.x) / chunks; r < count; r += block_threads / chunks) {
    const bool inside = row0 + r < rows && col + chunk < ld;
    copy_async(to + r * to_stride + chunk, inside ? from + static_cast<std::size_t>(row0 + r) * ld + col + chunk : from,
               inside);
  }
}

// Σ over the batch of what the layer read times its deltas, → tile (side, stride), where the operands lay.
template <Math math>
__device__ __forceinline__ void sum_gradient(const UpdateTask& task, std::size_t run, int batch, float* shared) {
  float *x = shared, *dy = shared + rows_at_once * stride;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4, t = lane % 4, m0 = warp / 2 * warp_m, n0 = warp % 2 * warp_n;
  constexpr int tiles = warp_n / 8;
  float c[tiles][4] = {};
#pragma unroll 1
  for (int row0 = 0; row0 < batch; row0 += rows_at_once) {
    const int rows = min(round_up(batch - row0, 8), rows_at_once);
    copy_tile(x, stride, task.x + run, task.ldx, row0, batch, rows, task.row0);
    copy_tile(dy, stride, task.dy + run, task.lddy, row0, batch, rows, task.col0);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
#pragma unroll 1
    for (int k = t; k < rows; k += 8) {
      const float *a = x + k * stride + m0 + g, *b = dy + k * stride + n0 + g;
      Operand<math, 4> left;
      left.set(0, rounded<math>(a[0]));
      left.set(1, rounded<math>(a[8]));
      left.set(2, rounded<math>(a[4 * stride]));
      left.set(3, rounded<math>(a[4 * stride + 8]));
#pragma unroll
      for (int j = 0; j < tiles; ++j) {
        Operand<math, 2> right;
        right.set(0, rounded<math>(b[8 * j]));
        right.set(1, rounded<math>(b[4 * stride + 8 * j]));
        multiply_add<math>(c[j], left, right);
      }
    }
    __syncthreads();
  }
  float* to = shared + (m0 + g) * stride + n0 + 2 * t;
#pragma unroll
  for (int j = 0; j < tiles; ++j) {
    *reinterpret_cast<float2*>(to + 8 * j) = make_float2(c[j][0], c[j][1]);
    *reinterpret_cast<float2*>(to + 8 * stride + 8 * j) = make_float2(c[j][2], c[j][3]);
  }
}

// Of a tile's gradient and what was kept of its parameters and moments: four neighbours at a time. What pads a row has no
// gradient and stays 0.
template <OptimizerKind optimizer>
__device__ void update_tile(const UpdateTask& task, const float* gradients, const float* kept, const Step& step) {
  constexpr int quads = side / 4;
  const int col = 4 * (static_cast<int>(threadIdx.x) % quads);
  if (task.col0 + col >= task.ld) return;
  bool finite = true;
#pragma unroll 1
  for (int row = static_cast<int>(threadIdx.x) / quads; row < side && task.row0 + row < task.rows;
       row += block_threads / quads) {
    const auto kept_at = [&](int i) { return *reinterpret_cast<const float4*>(kept + (i * side + row) * side + col); };
    const float4 gradient = *reinterpret_cast<const float4*>(gradients + row * stride + col);
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(task.row0 + row) * task.ld + task.col0 + col;
    float4 theta = kept_at(0), second = kept_at(1), first = {};
    if constexpr (optimizer == OptimizerKind::adam) first = *reinterpret_cast<const float4*>(step.first + at);
    step.move<optimizer>(theta.x, gradient.x, first.x, second.x);
    step.move<optimizer>(theta.y, gradient.y, first.y, second.y);
    step.move<optimizer>(theta.z, gradient.z, first.z, second.z);
    step.move<optimizer>(theta.w, gradient.w, first.w, second.w);
    finite = finite && isfinite(theta.x) && isfinite(theta.y) && isfinite(theta.z) && isfinite(theta.w);
    *reinterpret_cast<float4*>(step.theta + at) = theta;
    *reinterpret_cast<float4*>(step.second + at) = second;
    if constexpr (optimizer == OptimizerKind::adam) *reinterpret_cast<float4*>(step.first + at) = first;
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
#pragma unroll 4
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
__global__ void __launch_bounds__(block_threads, 2)
    update(const __grid_constant__ Space space, const __grid_constant__ UpdateSpec spec) {
  extern __shared__ __align__(16) float shared[];
  const int run = static_cast<int>(blockIdx.y);
  if (blockIdx.x == 0) {  // it takes long and starts first
    wait_for_previous();
    learn(space, spec.objective, run, reinterpret_cast<int*>(shared), shared_floats);
    return;
  }
  const UpdateTask task = spec.tasks[blockIdx.x - 1];
  const std::size_t floats = run * space.stride;
  const std::size_t at = floats + task.parameter;
  float* kept = shared + 2 * rows_at_once * stride;  // θ, second moments
  if (task.rows > 0) {
    copy_tile(kept, side, space.parameters + at, task.ld, task.row0, task.rows, side, task.col0);
    copy_tile(kept + side * side, side, space.second + at, task.ld, task.row0, task.rows, side, task.col0);
  }
  wait_for_previous();
  RunState* state = space.of(space.state, run);
  const Step step = {space.parameters + at,
                     space.first ? space.first + at : nullptr,
                     space.second + at,
                     static_cast<float>(state->rate_factor * task.rate),
                     state,
                     state->iteration,
                     AdamCorrection(state->adam[0], state->adam[1])};
  if (task.rows == 0) return update_biases<optimizer>(task, task.dy + floats, space.batch, shared, step);
  sum_gradient<math>(task, floats, space.batch, shared);
  __syncthreads();
  update_tile<optimizer>(task, shared, kept, step);
}

template <Math math, OptimizerKind optimizer>
void launch(const Space& space, const UpdateSpec& spec, int runs, cudaStream_t stream) {
  constexpr int bytes = shared_floats * static_cast<int>(sizeof(float));
  allow_shared_memory<update<math, optimizer>, bytes>();
  const Launch launch(dim3(spec.count + 1, runs), 1, block_threads, bytes, stream);
  check(cudaLaunchKernelEx(&launch.config, update<math, optimizer>, space, spec), "updating the parameters");
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
    for (task.row0 = 0; task.row0 < layer.inputs; task.row0 += side)
      for (task.col0 = 0; task.col0 < layer.outputs; task.col0 += side) tasks.push_back(task);
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
