#pragma once

#include <algorithm>

#include "hone/engine/cuda/memory.cuh"
#include "hone/engine/cuda/mma.cuh"

namespace hone::cuda {

// C (m, n) = A (m, k) B (k, n), with an epilogue that takes every element of C where it is made. Rows of memory are
// multiples of four floats long, and what pads them is zero.
//   forward          Y (chains, out)  = X (chains, in)  W (in, out)       a along k, b along n
//   backward         dX (chains, in)  = dY (chains, out) Wᵀ               a along k, b along k
enum class Along { n, k };  // of b

// A block's share of C, and of k at a time; a warp's share of that. Of several groups of warps each takes its part of
// k, and their sums meet in shared memory at the end.
template <int M, int N, int K, int WM, int WN, int stages_, int groups_>
struct Tile {
  static constexpr int m = M, n = N, k = K, warp_m = WM, warp_n = WN, stages = stages_, groups = groups_;
  static constexpr int warps_m = M / WM, warps_n = N / WN, threads = 32 * warps_m * warps_n * groups;
  static_assert(K % (8 * groups) == 0);
};
using SmallTile = Tile<16, 32, 128, 16, 16, 3, 8>;  // some hundred rows: many blocks, few waits

template <class E>
struct Product {
  const E* a;
  const E* b;
  int lda, ldb;
  int m, n, k;
};

// 16 bytes to an address in shared memory; of those that are not inside nothing is read, and they become zero
__device__ __forceinline__ void copy_async(unsigned to, const void* from, bool inside) {
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_async(void* to, const void* from, bool inside) {
  copy_async(static_cast<unsigned>(__cvta_generic_to_shared(to)), from, inside);
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// One operand's share in shared memory: `outer` rows of `inner` numbers that are neighbours in memory, padded so that a
// warp's fragment touches every bank once.
template <int outer, int inner, bool along_k>
struct Share {
  static constexpr int stride = inner + (along_k ? 4 : 8);
  static constexpr int size = outer * stride;

  // rows [row, row + outer) and columns [col, col + inner) of a matrix (rows, cols)
  template <int threads>
  static __device__ void load(float* to, const float* from, int ld, int row, int rows, int col, int cols) {
    constexpr int chunks = inner / 4, turns = (outer * chunks + threads - 1) / threads;
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {  // a number that the compiler knows
      const int i = static_cast<int>(threadIdx.x) + turn * threads;
      if (outer * chunks % threads != 0 && i >= outer * chunks) break;
      const int r = i / chunks, c = 4 * (i % chunks);
      const bool inside = row + r < rows && col + c < cols;
      copy_async(to + r * stride + c, inside ? from + static_cast<std::size_t>(row + r) * ld + col + c : from, inside);
    }
  }
};

template <class T, Along b>
struct Shares {
  using A = Share<T::m, T::k, true>;
  using B = std::conditional_t<b == Along::k, Share<T::n, T::k, true>, Share<T::k, T::n, false>>;
  static constexpr int stage = A::size + B::size;
  static constexpr int floats = T::stages * stage, meeting = T::groups * T::m * (T::n + 4);
  static constexpr int bytes = std::max(floats, meeting) * static_cast<int>(sizeof(float));
};

// Two neighbours of C, n even, by each of `lanes` lanes: epilogue(row, n, column, loaded, c, inside), where so many of
// the two are inside. Those that are not are another time the last of their row, so that nothing depends on a branch,
// and are not stored. Where the epilogue sums rows, its return values are summed over the lanes, and row_sum(m, part,
// sum) is called once.
inline constexpr int row_sum_columns = 32;  // of a row, in one sum
struct PairPlace {
  int m, n;    // of what is read
  int inside;  // of the two
  __device__ PairPlace(int row, int column, int rows, int columns)
      : m(min(row, rows - 1)), n(min(column, (columns - 1) & ~1)), inside(row < rows ? columns - column : 0) {}
};
template <int lanes, class Epilogue, class Column>
__device__ __forceinline__ void finish_pair(const Epilogue& epilogue, const PairPlace& place,
                                            const typename Epilogue::Row& row, const Column& column,
                                            const typename Epilogue::Loaded& loaded, const float2& c, int part) {
  if constexpr (Epilogue::sums_rows) {
    float sum = epilogue(row, place.n, column, loaded, c, place.inside);
    if (!epilogue.wants_sums()) return;
#pragma unroll
    for (int offset = lanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (threadIdx.x % lanes == 0 && place.inside > 0) epilogue.row_sum(place.m, part, sum);
  } else {
    epilogue(row, place.n, column, loaded, c, place.inside);
  }
}

// The groups' sums meet in shared memory; then 16 lanes finish 32 neighbours of a row.
template <class T, class Epilogue, int tiles_m, int tiles_n>
__device__ void finish_together(const Product<float>& p, int m0, int n0, float* shared,
                                const float (&c)[tiles_m][tiles_n][4], const Epilogue& epilogue) {
  constexpr int stride = T::n + 4, size = T::m * stride, pairs = T::n / 2;
  static_assert(T::n == row_sum_columns && T::m * pairs <= T::threads);
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int group = threadIdx.x / (T::threads / T::groups), warp = threadIdx.x / 32 - group * T::warps_m * T::warps_n;
  const int warp_m = warp / T::warps_n * T::warp_m, warp_n = warp % T::warps_n * T::warp_n;
#pragma unroll
  for (int i = 0; i < tiles_m; ++i)
#pragma unroll
    for (int j = 0; j < tiles_n; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<float2*>(shared + group * size + (warp_m + 16 * i + g + 8 * half) * stride + warp_n + 8 * j +
                                   2 * t) = make_float2(c[i][j][2 * half], c[i][j][2 * half + 1]);
  __syncthreads();
  const int row = threadIdx.x / pairs, column = 2 * (threadIdx.x % pairs);
  if (row >= T::m) return;
  float2 sum = {0, 0};
#pragma unroll
  for (int other = 0; other < T::groups; ++other) {
    const float2 more = *reinterpret_cast<const float2*>(shared + other * size + row * stride + column);
    sum = {sum.x + more.x, sum.y + more.y};
  }
  const PairPlace place(m0 + row, n0 + column, p.m, p.n);
  const auto to = epilogue.row(place.m);
  finish_pair<pairs>(epilogue, place, to, epilogue.column(place.n), epilogue.load(to, place.n), sum, n0 / T::n);
}

// C's share of the block whose first element is (m0, n0)
template <class T, Along b, Math math, class Epilogue>
__device__ void multiply_tile(const Product<float>& p, int m0, int n0, float* shared, const Epilogue& epilogue) {
  using S = Shares<T, b>;
  constexpr int tiles_m = T::warp_m / 16, tiles_n = T::warp_n / 8;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int group = threadIdx.x / (T::threads / T::groups), warp = threadIdx.x / 32 - group * T::warps_m * T::warps_n;
  const int warp_m = warp / T::warps_n * T::warp_m, warp_n = warp % T::warps_n * T::warp_n;
  const int steps = (p.k + T::k - 1) / T::k;

  const auto load = [&](int step) {
    float* stage = shared + step % T::stages * S::stage;
    const int k0 = step * T::k;
    S::A::template load<T::threads>(stage, p.a, p.lda, m0, p.m, k0, p.k);
    if constexpr (b == Along::k)
      S::B::template load<T::threads>(stage + S::A::size, p.b, p.ldb, n0, p.n, k0, p.k);
    else
      S::B::template load<T::threads>(stage + S::A::size, p.b, p.ldb, k0, p.k, n0, p.n);
  };

  float c[tiles_m][tiles_n][4] = {};
  for (int step = 0; step < T::stages - 1; ++step) {
    if (step < steps) load(step);
    commit_copies();
  }
  for (int step = 0; step < steps; ++step) {
    wait_copies<T::stages - 2>();
    __syncthreads();
    if (step + T::stages - 1 < steps) load(step + T::stages - 1);
    commit_copies();
    const float* as = shared + step % T::stages * S::stage;
    const float* bs = as + S::A::size;
#pragma unroll
    for (int step_k = 0; step_k < T::k / T::groups; step_k += 8) {
      const int k = group * (T::k / T::groups) + step_k;
      Operand<math, 4> left[tiles_m];
      Operand<math, 2> right[tiles_n];
      const auto at_a = [&](int row, int col) { return rounded<math>(as[row * S::A::stride + col]); };
      const auto at_b = [&](int row, int col) {
        return rounded<math>(b == Along::k ? bs[col * S::B::stride + row] : bs[row * S::B::stride + col]);
      };
#pragma unroll
      for (int i = 0; i < tiles_m; ++i) {
        const int row = warp_m + 16 * i + g;
        left[i].set(0, at_a(row, k + t));
        left[i].set(1, at_a(row + 8, k + t));
        left[i].set(2, at_a(row, k + t + 4));
        left[i].set(3, at_a(row + 8, k + t + 4));
      }
#pragma unroll
      for (int j = 0; j < tiles_n; ++j) {
        const int col = warp_n + 8 * j + g;
        right[j].set(0, at_b(k + t, col));
        right[j].set(1, at_b(k + t + 4, col));
      }
#pragma unroll
      for (int i = 0; i < tiles_m; ++i)
#pragma unroll
        for (int j = 0; j < tiles_n; ++j) multiply_add<math>(c[i][j], left[i], right[j]);
    }
  }
  wait_copies<0>();
  __syncthreads();  // the shares may be written anew

  finish_together<T>(p, m0, n0, shared, c, epilogue);
}

// How far one product's numbers are from another's, in floats: operands, C and what an epilogue reads and writes with
// its shape, biases, data.
struct Distances {
  std::size_t a = 0, b = 0, c = 0, bias = 0, data = 0;
};
// Products of the same shape side by side: of some networks of a run, and of several runs.
struct Beside {
  int nets = 1, runs = 1;
  Distances net, run;

  int count() const { return nets * runs; }
  __device__ Distances of(int index) const {
    const std::size_t n = index % nets, r = index / nets;
    return {n * net.a + r * run.a, n * net.b + r * run.b, n * net.c + r * run.c, n * net.bias + r * run.bias,
            n * net.data + r * run.data};
  }
};

template <class T, Along b, Math math, class Epilogue>
__global__ void __launch_bounds__(T::threads)
    product_kernel(Product<float> p, Beside beside, Epilogue epilogue) {
  extern __shared__ __align__(16) float shared[];
  const Distances distances = beside.of(static_cast<int>(blockIdx.z));
  p.a += distances.a;
  p.b += distances.b;
  epilogue.shift(distances);
  multiply_tile<T, b, math>(p, static_cast<int>(blockIdx.y) * T::m, static_cast<int>(blockIdx.x) * T::n, shared,
                            epilogue);
}

template <auto kernel, int bytes>
void allow_shared_memory() {  // asks once a kernel
  if constexpr (bytes > 48 * 1024) {
    static const cudaError_t raised = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    check(raised, "asking for shared memory");
  }
}

template <class T, Along b, Math math, class Epilogue>
void launch_product(const Product<float>& p, const Beside& beside, const Epilogue& epilogue, cudaStream_t stream) {
  constexpr int bytes = Shares<T, b>::bytes;
  constexpr auto kernel = product_kernel<T, b, math, Epilogue>;
  allow_shared_memory<kernel, bytes>();
  const dim3 grid(ceil_div(p.n, T::n), ceil_div(p.m, T::m), beside.count());
  kernel<<<grid, T::threads, bytes, stream>>>(p, beside, epilogue);
  check(cudaGetLastError(), "starting a product");
}

}  // namespace hone::cuda
