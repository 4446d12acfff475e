#pragma once

#include "hone/engine/cuda/product/tile_product.cuh"

namespace hone::cuda {

// C (m, n) = A Bᵀ for n ≤ 16: gradients with respect to z, and the last layers of q's networks. With tiles, a few
// multiprocessors would do all the work, over the whole of k. Here a block has 16 rows, and its warps share out
// k; fragments come from memory by 16 bytes per lane: a lane's numbers along k are neighbours, in A and in B alike, and
// the order of k does not matter.
struct NarrowTile {
  static constexpr int m = 16, columns = 16, tiles_n = columns / 8;
  static constexpr int n = row_sum_columns;  // as `finish_tile` takes them: half of them are never inside
  static constexpr int warps = 8, threads = 32 * warps, sums_stride = n + 8;
  static constexpr int together = 4;     // steps of a warp that it asks for at a time
  static constexpr int step_bytes = 64;  // of a row
};

// A warp's share of k, of all 16 rows from m0 on.
template <class E, Math math>
__device__ __forceinline__ void multiply_narrow(Sums (&c)[NarrowTile::tiles_n], const Product<E>& p, int m0) {
  using T = NarrowTile;
  const int warp = this_warp(), g = this_lane() / 4, t = this_lane() % 4;
  constexpr int chunk = 16 / sizeof(E), step = T::step_bytes / sizeof(E);
  const auto load = [&](const E* from, int ld, int row, int rows, int k) {
    return row < rows && k < p.k ? __ldg(reinterpret_cast<const uint4*>(from + static_cast<std::size_t>(row) * ld + k))
                                 : uint4{};
  };
  const auto word = [](const uint4& w, int i) { return i == 0 ? w.x : i == 1 ? w.y : i == 2 ? w.z : w.w; };
#pragma unroll 1
  for (int k0 = warp * step; k0 < p.k; k0 += T::together * T::warps * step) {
    uint4 a[T::together][2], b[T::together][T::tiles_n];
#pragma unroll
    for (int i = 0; i < T::together; ++i) {  // first all loads
      const int k = k0 + i * T::warps * step + t * chunk;
#pragma unroll
      for (int j = 0; j < 2; ++j) a[i][j] = load(p.a, p.lda, m0 + 8 * j + g, p.m, k);
#pragma unroll
      for (int j = 0; j < T::tiles_n; ++j) b[i][j] = load(p.b, p.ldb, 8 * j + g, p.n, k);
    }
#pragma unroll
    for (int i = 0; i < T::together; ++i)
#pragma unroll
      for (int first = 0; first < 4; first += 2) {  // an operand has two words of a row
        TileOperand<E, math, 4> left;
#pragma unroll
        for (int e = 0; e < 4; ++e) left.set(e, word(a[i][e % 2], first + e / 2));
#pragma unroll
        for (int j = 0; j < T::tiles_n; ++j) {
          TileOperand<E, math, 2> right;
#pragma unroll
          for (int e = 0; e < 2; ++e) right.set(e, word(b[i][j], first + e));
          multiply_add(c[j], left, right);
        }
      }
  }
}

template <class E, Math math, class Epilogue>
__global__ void __launch_bounds__(NarrowTile::threads)
    narrow_product_kernel(Product<E> p, Beside beside, Epilogue epilogue) {
  using T = NarrowTile;
  __shared__ __align__(16) float sums[T::warps][T::m][T::sums_stride];
  const Distances distances = beside.of(static_cast<int>(blockIdx.y));
  p.shift(distances);
  epilogue.shift(distances);
  const int m0 = static_cast<int>(blockIdx.x) * T::m;
  Sums c[T::tiles_n] = {};
  multiply_narrow<E, math>(c, p, m0);
  const int lane = this_lane(), warp = this_warp();
#pragma unroll
  for (int j = 0; j < T::tiles_n; ++j) put_sums(&sums[warp][lane / 4][8 * j + 2 * (lane % 4)], T::sums_stride, c[j]);
  __syncthreads();
  static_assert(T::m * T::columns == T::threads);
  const int row = this_thread() / T::columns, column = this_thread() % T::columns;
  float sum = 0;
#pragma unroll
  for (int other = 0; other < T::warps; ++other) sum += sums[other][row][column];
  sums[0][row][column] = sum;
  __syncthreads();
  epilogue.chosen([&](const auto& fixed) { finish_tile<T>(p.m, p.n, m0, 0, sums[0][0], fixed); });
}

template <class E, Math math, class Epilogue>
void launch_narrow(const Product<E>& p, const Beside& beside, const Epilogue& epilogue, cudaStream_t stream) {
  const dim3 grid(ceil_div(p.m, NarrowTile::m), beside.count());
  launch(narrow_product_kernel<E, math, Epilogue>, {grid, NarrowTile::threads}, stream, "starting a product", p, beside,
         epilogue);
}

}  // namespace hone::cuda
