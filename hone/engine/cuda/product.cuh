#pragma once

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
template <int M, int N, int K, int WM, int WN, int stages_, int groups_ = 1>
struct Tile {
  static constexpr int m = M, n = N, k = K, warp_m = WM, warp_n = WN, stages = stages_, groups = groups_;
  static constexpr int warps_m = M / WM, warps_n = N / WN, threads = 32 * warps_m * warps_n * groups;
  static_assert(K % (8 * groups) == 0);
};
using SmallTile = Tile<16, 32, 128, 16, 16, 3, 8>;  // some hundred rows: many blocks, few waits
using LargeTile = Tile<128, 128, 32, 64, 32, 3>;    // thousands of rows

struct Product {
  const float* a;
  const float* b;
  int lda, ldb;
  int m, n, k;
};

__device__ __forceinline__ void copy_async(float* to, const float* from, bool inside) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = inside ? 16 : 0;  // the rest becomes zero
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
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
  static constexpr int floats = T::stages * stage, meeting = T::groups > 1 ? T::groups * T::m * (T::n + 4) : 0;
  static constexpr int bytes = (floats > meeting ? floats : meeting) * static_cast<int>(sizeof(float));
};

// Every thread finishes what it has summed: many numbers, so that the epilogue's choices are made before.
template <class T, class Epilogue, int tiles_m, int tiles_n>
__device__ __forceinline__ void finish_apart(const Product& p, int m0, int n0, float* shared,
                                             const float (&c)[tiles_m][tiles_n][4], const Epilogue& epilogue) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int warp_m = warp / T::warps_n * T::warp_m, warp_n = warp % T::warps_n * T::warp_n;
#pragma unroll
  for (int i = 0; i < tiles_m; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_m + 16 * i + g + 8 * half, m = m0 + row;
      float sum = 0;
      if (m < p.m) {
        const auto to = epilogue.row(m);
#pragma unroll
        for (int j = 0; j < tiles_n; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int n = n0 + warp_n + 8 * j + 2 * t + e;
            const bool inside = n < p.n;
            if constexpr (Epilogue::sums_rows)
              sum += epilogue(to, inside ? n : p.n - 1, c[i][j][2 * half + e], inside);
            else
              epilogue(to, inside ? n : p.n - 1, c[i][j][2 * half + e], inside);
          }
      }
      if constexpr (Epilogue::sums_rows) {
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        if (t == 0) shared[row * T::warps_n + warp_n / T::warp_n] = sum;
      }
    }
  if constexpr (Epilogue::sums_rows) {
    __syncthreads();
    for (int row = threadIdx.x; row < T::m; row += T::threads) {
      if (m0 + row >= p.m) continue;
      float sum = 0;
      for (int w = 0; w < T::warps_n; ++w) sum += shared[row * T::warps_n + w];
      epilogue.row_sum(m0 + row, sum);
    }
  }
}

// The groups' sums meet in shared memory; then a warp finishes 32 neighbours of a row at a time.
template <class T, class Epilogue, int tiles_m, int tiles_n>
__device__ void finish_together(const Product& p, int m0, int n0, float* shared, const float (&c)[tiles_m][tiles_n][4],
                                const Epilogue& epilogue) {
  static_assert(T::n == 32);
  constexpr int stride = T::n + 4, size = T::m * stride;
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
#pragma unroll
  for (int row = threadIdx.x / 32; row < T::m; row += T::threads / 32) {
    const int m = m0 + row, n = n0 + lane;
    float sum = 0;
#pragma unroll
    for (int other = 0; other < T::groups; ++other) sum += shared[other * size + row * stride + lane];
    if constexpr (Epilogue::sums_rows) {
      sum = m < p.m && n < p.n ? epilogue(epilogue.row(m), n, sum, true) : 0.0f;
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
      if (lane == 0 && m < p.m) epilogue.row_sum(m, sum);
    } else if (m < p.m && n < p.n) {
      epilogue(epilogue.row(m), n, sum, true);
    }
  }
}

// C's share of the block whose first element is (m0, n0): epilogue(epilogue.row(m), n, c, inside) for every element.
// One that is not inside is another time the last of its row, so that nothing depends on a branch, and is not stored.
// Where the epilogue sums rows, its return values are summed over the block's columns and row_sum(m, sum) is called once
// a row.
template <class T, Along b, Math math, class Epilogue>
__device__ void multiply_tile(const Product& p, int m0, int n0, float* shared, const Epilogue& epilogue) {
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

  if constexpr (T::groups > 1)
    finish_together<T>(p, m0, n0, shared, c, epilogue);
  else
    epilogue.chosen([&](const auto& fixed) { finish_apart<T>(p, m0, n0, shared, c, fixed); });
}

// Products of the same shape side by side: of a run's two encoder networks, and of several runs. Distances in floats.
struct Side {
  std::size_t a = 0, b = 0, c = 0;
};

template <class T, Along b, Math math, class Epilogue>
__global__ void __launch_bounds__(T::threads, math == Math::tf32 && T::groups == 1 ? 2 : 0)  // two share the waits
    product_kernel(Product p, int nets, Side net, Side run, Epilogue epilogue) {
  extern __shared__ __align__(16) float shared[];
  const std::size_t n = blockIdx.z % nets, r = blockIdx.z / nets;
  p.a += n * net.a + r * run.a;
  p.b += n * net.b + r * run.b;
  epilogue.shift(n, net, r, run);
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
void launch_product(const Product& p, int nets, const Side& net, int runs, const Side& run, const Epilogue& epilogue,
                    cudaStream_t stream) {
  constexpr int bytes = Shares<T, b>::bytes;
  constexpr auto kernel = product_kernel<T, b, math, Epilogue>;
  allow_shared_memory<kernel, bytes>();
  const dim3 grid(ceil_div(p.n, T::n), ceil_div(p.m, T::m), nets * runs);
  kernel<<<grid, T::threads, bytes, stream>>>(p, nets, net, run, epilogue);
  check(cudaGetLastError(), "starting a product");
}

}  // namespace hone::cuda
