#pragma once

#include "hone/engine/cuda/update/update_step.cuh"

namespace hone::cuda {

// The gradient of a tensor: sums over the rows of a minibatch, in their order.

// A block has a tile of a matrix of weights, and each warp a part of it.
constexpr int side = 64, log_side_quads = 4, warp_m = 16, warp_n = 32;
constexpr int stride = side + 8;  // of operands: a fragment touches every bank once
static_assert(update_warps == (side / warp_m) * (side / warp_n) && side == 4 << log_side_quads);
constexpr int bias_columns = 64, bias_parts = update_threads / bias_columns;

struct FromZero {
  __device__ void operator()(Sums&, int, int) const {}
};

// Σ over the batch of what the layer read times its deltas, → tile (side, stride), where the operands lay. from(sums,
// row, column) sets the sums that it begins with: of two neighbours, and of those 8 rows further.
template <Math math, class From = FromZero>
__device__ __forceinline__ void sum_gradient(const UpdateTask& task, const Space& space, int run, float* shared,
                                             From sums_before = {}) {
  const float *from = task.x ? task.x + run * space.stride : space.of(space.x, run),
              *deltas = task.dy + run * space.stride;
  const int batch = space.batch;
  float *x = shared, *dy = shared + rows_at_once * stride;
  const int warp = this_warp(), lane = this_lane();
  const int g = lane / 4, t = lane % 4, m0 = warp / 2 * warp_m, n0 = warp % 2 * warp_n;
  constexpr int tiles = warp_n / 8;
  Sums c[tiles] = {};
  for (int j = 0; j < tiles; ++j) sums_before(c[j], m0 + g, n0 + 8 * j + 2 * t);
#pragma unroll 1
  for (int row0 = 0; row0 < batch; row0 += rows_at_once) {
    const int rows = min(round_up(batch - row0, 8), rows_at_once);
    copy_tile(x, stride, from, task.ldx, row0, batch, rows, task.row0, log_side_quads);
    copy_tile(dy, stride, deltas, task.lddy, row0, batch, rows, task.col0, log_side_quads);
    wait_for_copies();
    __syncthreads();
#pragma unroll 1
    for (int k = t; k < rows; k += 8) {
      const float *a = x + k * stride + m0 + g, *b = dy + k * stride + n0 + g;
      const Operand<math, 4> left(rounded<math>(a[0]), rounded<math>(a[8]), rounded<math>(a[4 * stride]),
                                  rounded<math>(a[4 * stride + 8]));
      for (int j = 0; j < tiles; ++j) {
        const Operand<math, 2> right(rounded<math>(b[8 * j]), rounded<math>(b[4 * stride + 8 * j]));
        multiply_add<math>(c[j], left, right);
      }
    }
    __syncthreads();
  }
  float* to = shared + (m0 + g) * stride + n0 + 2 * t;
  for (int j = 0; j < tiles; ++j) put_sums(to + 8 * j, stride, c[j]);
  __syncthreads();
}

// A part of the sum of deltas over the batch: every bias_parts-th row, from `part` on, after `sum`.
__device__ __forceinline__ float sum_deltas(const UpdateTask& task, const Space& space, int run, int column, int part,
                                            float sum) {
  const float* dy = task.dy + run * space.stride;
  if (column < task.cols)
#pragma unroll 8
    for (int row = part; row < space.batch; row += bias_parts)
      sum += dy[static_cast<std::size_t>(row) * task.lddy + column];
  return sum;
}

}  // namespace hone::cuda
