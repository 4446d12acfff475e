#pragma once

#include "hone/engine/cuda/device/launch.cuh"

namespace hone::cuda {

// One warp per row (a chain, a datum) of each run, several warps per block.
inline constexpr int rows_per_block = 4;
struct WarpRow {
  int run, row, lane;
};
__device__ __forceinline__ WarpRow this_row() {
  return {static_cast<int>(blockIdx.y),
          static_cast<int>(blockIdx.x) * rows_per_block + static_cast<int>(threadIdx.x) / 32,
          static_cast<int>(threadIdx.x) % 32};
}
inline Grid warps_for(int rows, int runs = 1) {
  return {dim3(ceil_div(rows, rows_per_block), runs), 32 * rows_per_block};
}

__device__ __forceinline__ double warp_sum(double x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, offset);
  return x;
}

// Several sums at a time, in little code.
template <int count>
__device__ __forceinline__ void warp_sums(double (&x)[count]) {
#pragma unroll 1
  for (int offset = 16; offset > 0; offset /= 2)
    for (double& s : x) s += __shfl_xor_sync(0xFFFFFFFFu, s, offset);
}

// Two sums at a time, for the first lanes alone where the others have 0.
template <int lanes>
__device__ __forceinline__ void sum_lanes(double& a, double& b) {
  for (int offset = lanes <= 16 ? 8 : 16; offset > 0; offset /= 2) {
    const double c = __shfl_xor_sync(0xFFFFFFFFu, a, offset), d = __shfl_xor_sync(0xFFFFFFFFu, b, offset);
    a += c;
    b += d;
  }
}

}  // namespace hone::cuda
