#pragma once

#include "hone/engine/cuda/device/copy.cuh"
#include "hone/engine/cuda/device/mma.cuh"
#include "hone/engine/cuda/encoder/encoder_shape.cuh"

namespace hone::cuda {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Code that runs once per iteration takes as long as fetching its instructions, 10 cycles each. So it is short: loops
// are not unrolled, shared code is called, and the host computes what a shape implies.

static __device__ __noinline__ void clear_floats(float* from, int count) {
#pragma unroll 1
  for (int i = threadIdx.x; i < count; i += threads) from[i] = 0;
}

// Copies `count` rows of `width` floats (a multiple of four) to shared memory, each by 2^log_sharing threads. They have
// arrived after `wait_for_copies` and a barrier.
template <int log_sharing>
static __device__ __noinline__ void copy_rows(float* to, int stride, const float* from, int ld, int width, int count) {
  const int col = 4 * (static_cast<int>(threadIdx.x) & ((1 << log_sharing) - 1));
#pragma unroll 1
  for (int r = static_cast<int>(threadIdx.x) >> log_sharing; r < count; r += threads >> log_sharing)
#pragma unroll 1
    for (int c = col; c < width; c += 4 << log_sharing)
      copy_async(to + r * stride + c, from + static_cast<std::size_t>(r) * ld + c, true);
}

// Copies of neighbouring floats to shared memory by one thread; others wait at the box.
class Copies {
 public:
  explicit __device__ Copies(const Mailbox& box) : box_(box) {}
  __device__ __forceinline__ void operator()(float* to, const float* from, int count) {
    if (count <= 0) return;
    copy_bytes(to, from, 4 * count, box_);
    bytes_ += 4 * count;
  }
  __device__ int bytes() const { return bytes_; }

 private:
  const Mailbox& box_;
  int bytes_ = 0;
};

// Σ_k weights[unit · by_unit + k · by_k] x(row, k), in parts: 2^shift warps share a tile of units. → (part, tile, lane,
// 4), as a product leaves them, with a barrier.
static __device__ __noinline__ void multiply_parts(int tiles, int all_k, int shift, const float* x, int stride,
                                                   const float* weights, int by_unit, int by_k, float* sums) {
  constexpr int unit_tile = EncoderSplit::unit_tile;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll 1
  for (int task = static_cast<int>(threadIdx.x) / 32; task < tiles << shift; task += warps) {
    const int first = 8 * (task & ((1 << shift) - 1));
    const float* w = weights + ((task >> shift) * unit_tile + g) * by_unit + (first + t) * by_k;
    const float* b = x + g * stride + first + t;
    float c[4] = {};
#pragma unroll 2
    for (int k = first; k < all_k; k += 8 << shift) {
      Operand<Math::tf32, 4> left;
      Operand<Math::tf32, 2> right;
      left.set(0, to_tf32(w[0]));
      left.set(1, to_tf32(w[8 * by_unit]));
      left.set(2, to_tf32(w[4 * by_k]));
      left.set(3, to_tf32(w[8 * by_unit + 4 * by_k]));
      right.set(0, to_tf32(b[0]));
      right.set(1, to_tf32(b[4]));
      multiply_add<Math::tf32>(c, left, right);
      w += (8 << shift) * by_k;
      b += 8 << shift;
    }
    reinterpret_cast<float4*>(sums)[((task & ((1 << shift) - 1)) * tiles + (task >> shift)) * 32 + lane] =
        make_float4(c[0], c[1], c[2], c[3]);
  }
  __syncthreads();
}
// A number, or four, of what `multiply_parts` left: `size` of them per part.
template <class T>
static __device__ __forceinline__ T sum_of_parts(const T* parts, int size, int shift, int i) {
  T sum = parts[i];
#pragma unroll 1
  for (int part = 1; part < 1 << shift; ++part) sum = sum + parts[part * size + i];
  return sum;
}

#endif

}  // namespace hone::cuda
