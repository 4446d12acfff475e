#pragma once

#include "hone/engine/cuda/device/copy.cuh"
#include "hone/engine/cuda/update/update.cuh"
#include "hone/optim/update.hpp"

namespace hone::cuda {

// Shared by all blocks that compute and apply a tensor's gradient. Shared memory holds the layer's input and deltas,
// `rows_at_once` rows of the batch at a time, as (row, unit), and θ with second moments. Fetching instructions takes
// about as long as running them, so hardly a loop is unrolled.
constexpr int update_threads = 256, update_warps = update_threads / 32, rows_at_once = 104;
static_assert(rows_at_once % 8 == 0);

// θ ← θ + step(gradient), element by element: as hone/optim/optimizer.hpp
struct Step {
  float *theta, *first, *second;
  float rate;
  RunState* state;
  std::uint32_t iteration;
  AdamCorrection correction;

  // reads nothing that the previous kernel writes
  __device__ Step(const Space& space, const UpdateTask& task, int run)
      : Step(space, run * space.stride + task.parameter, space.of(space.state, run), *space.of(space.now, run),
             task.rate) {}
  template <OptimizerKind optimizer>
  __device__ void move(float& at, float gradient, float& one, float& two) const {
    at += optimizer == OptimizerKind::rmsprop ? rmsprop_step(rate, gradient, iteration == 1, two)
                                              : adam_step(rate, gradient, correction, one, two);
  }
  __device__ void check(bool finite) const {
    if (!finite) atomicCAS(&state->bad, 0u, iteration);
  }

 private:
  __device__ Step(const Space& space, std::size_t at, RunState* run_state, const IterationState& now, double task_rate)
      : theta(space.parameters + at),
        first(space.first ? space.first + at : nullptr),
        second(space.second + at),
        rate(static_cast<float>(__ldcg(&now.rate_factor) * task_rate)),
        state(run_state),
        iteration(__ldcg(&now.iteration)),
        correction(__ldcg(&now.adam[0]), __ldcg(&now.adam[1])) {}
};

// Part of a matrix of weights in shared memory: 2^log_quads groups of four neighbours per row.
struct WeightTile {
  int rows, log_quads, stride;
  float *theta, *second;  // rows `stride` floats apart
  float* gradient;
  int gradient_stride;
};

// `rows` of a matrix (count, ld), or of a batch, 2^log_quads groups of four from column `col` on, to shared memory:
// there after `wait_for_copies`. Outside there is 0.
__device__ __forceinline__ void copy_tile(float* to, int stride, const float* from, int ld, int row0, int count,
                                          int rows, int col, int log_quads) {
  const int chunk = 4 * (this_thread() & ((1 << log_quads) - 1));
#pragma unroll 1
  for (int r = this_thread() >> log_quads; r < rows; r += update_threads >> log_quads) {
    const bool inside = row0 + r < count && col + chunk < ld;
    copy_async(to + r * stride + chunk, inside ? from + static_cast<std::size_t>(row0 + r) * ld + col + chunk : from,
               inside);
  }
}

// Rounds what this thread copied to tf32, once for all warps.
__device__ __forceinline__ void round_tile(float* tile, int stride, int rows, int log_quads) {
  float* four = tile + 4 * (this_thread() & ((1 << log_quads) - 1));
#pragma unroll 1
  for (int r = this_thread() >> log_quads; r < rows; r += update_threads >> log_quads) {
    auto& x = *reinterpret_cast<float4*>(four + r * stride);
    x = {to_tf32(x.x), to_tf32(x.y), to_tf32(x.z), to_tf32(x.w)};
  }
}

__device__ __forceinline__ void copy_weights(const WeightTile& tile, const UpdateTask& task, const Space& space,
                                             int run, bool moments) {
  const std::size_t at = run * space.stride + task.parameter;
  copy_tile(tile.theta, tile.stride, space.parameters + at, task.ld, task.row0, task.rows, tile.rows, task.col0,
            tile.log_quads);
  if (moments)
    copy_tile(tile.second, tile.stride, space.second + at, task.ld, task.row0, task.rows, tile.rows, task.col0,
              tile.log_quads);
}

// One store: from an assignment the compiler makes four.
__device__ __forceinline__ void store(float* to, const float4& four) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(four.x), "f"(four.y), "f"(four.z), "f"(four.w)
               : "memory");
}

// Of a tile's gradient: new parameters, which are kept(row, col, four of them) too, and moments. What pads a row has no
// gradient and stays 0.
template <OptimizerKind optimizer, class Keep>
__device__ __forceinline__ void update_tile(const UpdateTask& task, const WeightTile& tile, const Step& step,
                                            Keep keep) {
  const int col = 4 * (this_thread() & ((1 << tile.log_quads) - 1));
  if (task.col0 + col >= task.ld) return;
  float finite = 0;  // 0 · θ; not a number where one is not finite
#pragma unroll 1
  for (int row = this_thread() >> tile.log_quads; row < tile.rows && task.row0 + row < task.rows;
       row += update_threads >> tile.log_quads) {
    const auto four = [&](const float* from, int stride) {
      return *reinterpret_cast<const float4*>(from + row * stride + col);
    };
    const float4 gradient = four(tile.gradient, tile.gradient_stride);
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(task.row0 + row) * task.ld + task.col0 + col;
    float4 theta = four(tile.theta, tile.stride), second = four(tile.second, tile.stride), first = {};
    if constexpr (optimizer == OptimizerKind::adam) first = *reinterpret_cast<const float4*>(step.first + at);
    step.move<optimizer>(theta.x, gradient.x, first.x, second.x);
    step.move<optimizer>(theta.y, gradient.y, first.y, second.y);
    step.move<optimizer>(theta.z, gradient.z, first.z, second.z);
    step.move<optimizer>(theta.w, gradient.w, first.w, second.w);
    finite = fmaf(theta.x, 0, fmaf(theta.y, 0, fmaf(theta.z, 0, fmaf(theta.w, 0, finite))));
    keep(row, col, theta);
    store(step.theta + at, theta);
    store(step.second + at, second);
    if constexpr (optimizer == OptimizerKind::adam) store(step.first + at, first);
  }
  step.check(finite == 0);
}

}  // namespace hone::cuda
