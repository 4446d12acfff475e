#pragma once

#include <algorithm>

#include "hone/engine/cuda/device/copy.cuh"
#include "hone/engine/cuda/product/product.cuh"

namespace hone::cuda {

// C (m, n) = A Bᵀ by tiles, A (m, k) and B (n, k): a warp's fragments come by `ldmatrix`, for halves and for floats in
// the same way: a fragment has 32 bytes of a row.

// A block's share of C (m, n) and a warp's share of that. A multiprocessor holds `resident` blocks at a time (in
// float32 as many as registers allow). A stage holds 128 bytes of k from every row.
template <int M, int N, int WM, int WN, int resident_>
struct Tile {
  static constexpr int m = M, n = N, warp_m = WM, warp_n = WN, resident = resident_, stages = 3;
  static constexpr int row_bytes = 128, parts = row_bytes / 32;  // a part has one fragment of every row
  static constexpr int warps_m = M / WM, warps_n = N / WN, warps = warps_m * warps_n, threads = 32 * warps;
  static constexpr int tiles_m = WM / 16, tiles_n = WN / 8;
  static constexpr int stage = (M + N) * row_bytes;  // bytes
  static constexpr int sums_stride = N + 8;          // floats: hardly a bank twice
  static constexpr int bytes = std::max(stages * stage, M* sums_stride* static_cast<int>(sizeof(float)));
};

using LargeTile = Tile<128, 128, 64, 32, 2>;
using TallTile = Tile<128, 64, 64, 32, 3>;
using MediumTile = Tile<64, 64, 32, 32, 4>;
using LittleTile = Tile<32, 32, 16, 16, 4>;

// A fragment's words as the tensor cores take them.
template <class E, Math math, int count>
struct TileOperand {
  Operand<math, count> operand;
  __device__ __forceinline__ void set(int i, unsigned word) {
    const float x = __uint_as_float(word);
    operand.set(i, std::is_same_v<E, Tf32> ? x : rounded<math>(x));
  }
};
template <Math math, int count>
struct TileOperand<__half, math, count> {
  unsigned word[count];
  __device__ __forceinline__ void set(int i, unsigned w) { word[i] = w; }
};
template <class E, Math math>
__device__ __forceinline__ void multiply_add(Sums& c, const TileOperand<E, math, 4>& a,
                                             const TileOperand<E, math, 2>& b) {
  if constexpr (are_halves<E>)
    mma_halves(c, a.word, b.word[0], b.word[1]);
  else
    multiply_add<math>(c, a.operand, b.operand);
}

// Copies 128 bytes of `outer` rows, from `row` on, to shared memory, step by step along k. In row r, piece c of 16
// bytes lies at c ^ (r mod 8), so that the pieces of eight rows touch all banks. Nothing is copied beyond the last row;
// results there are not stored. Addresses are computed before the loop of a product, which is short.
template <int outer, int threads, class E>
class RowCopies {
 public:
  static constexpr int per_chunk = 16 / sizeof(E), rows_per_turn = threads / 8, turns = outer / rows_per_turn;
  static_assert(outer % rows_per_turn == 0);

  __device__ __forceinline__ RowCopies(const E* from, int ld, int row, int rows, int k) {
    const int c = this_thread() % 8, first = this_thread() / 8;
    at_ = reinterpret_cast<const uint4*>(from) + c;
    left_ = k - c * per_chunk;
    to_ = first * 128 + (c ^ first % 8) * 16;
#pragma unroll
    for (int turn = 0; turn < turns; ++turn)
      offset_[turn] =
          row + first + turn * rows_per_turn < rows ? (row + first + turn * rows_per_turn) * (ld / per_chunk) : -1;
  }

  __device__ __forceinline__ void copy_next(unsigned to) {
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      if (offset_[turn] < 0) continue;
      copy_async(to + to_ + turn * rows_per_turn * 128, at_ + offset_[turn], left_ > 0);
    }
    at_ += 8;
    left_ -= 8 * per_chunk;
  }

 private:
  const uint4* at_;
  int left_;           // of k
  int offset_[turns];  // in 16 bytes; -1: beyond
  unsigned to_;
};

// Two neighbours of C. Those outside read the last pair of their row instead, so that nothing depends on a branch, and
// are not stored; their c may be anything.
struct PairPlace {
  int m, n;    // of what is read
  int inside;  // of the two
  __device__ PairPlace(int row, int column, int rows, int columns)
      : m(min(row, rows - 1)), n(min(column, (columns - 1) & ~1)), inside(row < rows ? columns - column : 0) {}
};

// The block's sums lie in shared memory, (T::m, T::sums_stride). A warp finishes 32 neighbours of two rows at a time,
// and of several rows together, so that it waits once for what these read.
template <class T, class Epilogue>
__device__ __forceinline__ void finish_tile(int rows, int columns, int m0, int n0, const float* sums,
                                            const Epilogue& epilogue) {
  constexpr int width = row_sum_columns, pairs = width / 2;
  constexpr int rows_a_warp = 32 / pairs, step = T::warps * rows_a_warp, turns = T::m / step;
  constexpr int together = std::min(turns, 8);
  static_assert(turns % together == 0);
  const int lane = this_lane(), column = 2 * (lane % pairs);
  const int first = this_warp() * rows_a_warp + lane / pairs;
#pragma unroll
  for (int group = 0; group < T::n; group += width) {
    const float2 of_column = epilogue.column(PairPlace(0, n0 + group + column, rows, columns).n);
#pragma unroll 1
    for (int turn = 0; turn < turns; turn += together) {
      const auto row_of = [&](int i) { return first + (turn + i) * step; };
      const auto place_of = [&](int i) { return PairPlace(m0 + row_of(i), n0 + group + column, rows, columns); };
      decltype(epilogue.load(0, 0)) loaded[together];
#pragma unroll
      for (int i = 0; i < together; ++i) loaded[i] = epilogue.load(place_of(i).m, place_of(i).n);
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const PairPlace place = place_of(i);
        const auto c = *reinterpret_cast<const float2*>(sums + row_of(i) * T::sums_stride + group + column);
        if constexpr (Epilogue::sums_rows) {
          float sum = epilogue(place.m, place.n, of_column, loaded[i], c, place.inside);
#pragma unroll
          for (int offset = pairs / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
          if (threadIdx.x % pairs == 0 && place.inside > 0) epilogue.row_sum(place.m, (n0 + group) / width, sum);
        } else {
          epilogue(place.m, place.n, of_column, loaded[i], c, place.inside);
        }
      }
    }
  }
}

// Where a lane's rows of A and B begin in a stage. The matrices of A are (rows 0, k 0), (rows 8, k 0), (rows 0, k 1),
// (rows 8, k 1), those of B (rows 0, k 0), (rows 0, k 1), (rows 8, k 0), (rows 8, k 1).
template <class T>
struct LaneRows {
  __device__ LaneRows() {}
  const int warp = this_warp(), lane = this_lane();
  const int warp_m = warp / T::warps_n * T::warp_m, warp_n = warp % T::warps_n * T::warp_n;
  const unsigned a = (warp_m + lane % 16) * T::row_bytes + ((lane / 16 ^ lane % 8) * 16);
  const unsigned b = (T::m + warp_n + lane % 8 + lane / 16 * 8) * T::row_bytes + ((lane / 8 % 2 ^ lane % 8) * 16);
};
template <class T>
using TileSums = Sums[T::tiles_m][T::tiles_n];

// What a stage adds to a warp's sums.
template <class T, class E, Math math>
__device__ __forceinline__ void multiply_stage(TileSums<T>& c, unsigned stage, const LaneRows<T>& rows) {
#pragma unroll
  for (int part = 0; part < T::parts; ++part) {
    const unsigned at_a = (stage + rows.a) ^ (32 * part), at_b = (stage + rows.b) ^ (32 * part);
    TileOperand<E, math, 4> left[T::tiles_m];
    TileOperand<E, math, 2> right[T::tiles_n];
#pragma unroll
    for (int i = 0; i < T::tiles_m; ++i) {
      unsigned words[4];
      load_matrices(words, at_a + i * 16 * T::row_bytes);
#pragma unroll
      for (int e = 0; e < 4; ++e) left[i].set(e, words[e]);
    }
#pragma unroll
    for (int j = 0; j < T::tiles_n; j += 2) {
      unsigned words[4];
      load_matrices(words, at_b + j * 8 * T::row_bytes);
#pragma unroll
      for (int e = 0; e < 4; ++e) right[j + e / 2].set(e % 2, words[e]);
    }
#pragma unroll
    for (int i = 0; i < T::tiles_m; ++i)
#pragma unroll
      for (int j = 0; j < T::tiles_n; ++j) multiply_add(c[i][j], left[i], right[j]);
  }
}

template <class T>
__device__ __forceinline__ void store_sums(const TileSums<T>& c, float* sums, const LaneRows<T>& rows) {
#pragma unroll
  for (int i = 0; i < T::tiles_m; ++i)
#pragma unroll
    for (int j = 0; j < T::tiles_n; ++j)
      put_sums(sums + (rows.warp_m + 16 * i + rows.lane / 4) * T::sums_stride + rows.warp_n + 8 * j + rows.lane % 4 * 2,
               T::sums_stride, c[i][j]);
}

template <class T, class E, Math math, class Epilogue>
__device__ __forceinline__ void multiply_tile(const Product<E>& p, int m0, int n0, char* shared,
                                              const Epilogue& epilogue) {
  const auto base = static_cast<unsigned>(__cvta_generic_to_shared(shared)), end = base + T::stages * T::stage;
  RowCopies<T::m, T::threads, E> copies_a(p.a, p.lda, m0, p.m, p.k);
  RowCopies<T::n, T::threads, E> copies_b(p.b, p.ldb, n0, p.n, p.k);
  int copies_left = ceil_div(p.k, T::row_bytes / static_cast<int>(sizeof(E)));
  const int steps = copies_left;
  const auto next = [&](unsigned stage) { return stage + T::stage == end ? base : stage + T::stage; };
  unsigned to = base;
  const auto copy_next = [&] {
    if (copies_left-- > 0) {
      copies_a.copy_next(to);
      copies_b.copy_next(to + T::m * T::row_bytes);
      to = next(to);
    }
    commit_copies();
  };

  const LaneRows<T> rows;
  TileSums<T> c = {};
  for (int step = 0; step < T::stages - 1; ++step) copy_next();
  unsigned stage = base;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wait_copies<T::stages - 2>();
    __syncthreads();
    copy_next();
    multiply_stage<T, E, math>(c, stage, rows);
    stage = next(stage);
  }
  wait_copies<0>();
  __syncthreads();  // the stages may be written anew
  auto* sums = reinterpret_cast<float*>(shared);
  store_sums<T>(c, sums, rows);
  __syncthreads();
  epilogue.chosen([&](const auto& fixed) { finish_tile<T>(p.m, p.n, m0, n0, sums, fixed); });
}

template <class T, class E, Math math, class Epilogue>
__global__ void __launch_bounds__(T::threads, math == Math::fp32 ? 1 : T::resident)
    product_kernel(Product<E> p, Beside beside, Epilogue epilogue) {
  extern __shared__ __align__(128) char product_shared[];
  const Distances distances = beside.of(static_cast<int>(blockIdx.z));
  p.shift(distances);
  epilogue.shift(distances);
  multiply_tile<T, E, math>(p, static_cast<int>(blockIdx.y) * T::m, static_cast<int>(blockIdx.x) * T::n, product_shared,
                            epilogue);
}

template <class T, class E, Math math, class Epilogue>
void launch_tiles(const Product<E>& p, const Beside& beside, const Epilogue& epilogue, cudaStream_t stream) {
  constexpr auto kernel = product_kernel<T, E, math, Epilogue>;
  allow_shared_memory<kernel, T::bytes>();
  const dim3 grid(ceil_div(p.n, T::n), ceil_div(p.m, T::m), beside.count());
  launch(kernel, {grid, T::threads, T::bytes}, stream, "starting a product", p, beside, epilogue);
}

}  // namespace hone::cuda
