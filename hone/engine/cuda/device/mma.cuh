#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace hone::cuda {

// Products on the tensor cores. tf32: operands rounded to 10 bits of mantissa, sums in float32. fp32: every operand as
// a sum of two such numbers, and the three products that matter: correct to about float32.
enum class Math { tf32, fp32 };
template <class F>  // f<math>()
auto with_math(Math math, F f) {
  return math == Math::tf32 ? f.template operator()<Math::tf32>() : f.template operator()<Math::fp32>();
}

// x rounded to tf32, to nearest
__device__ __forceinline__ float to_tf32(float x) {
  std::uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}

// x rounded to tf32, towards zero
__device__ __forceinline__ float cut(float x) { return __uint_as_float(__float_as_uint(x) & 0xFFFFE000u); }

// What is stored where a product reads it.
template <Math math>
__device__ __forceinline__ float rounded(float x) {
  return math == Math::tf32 ? to_tf32(x) : x;
}

// Fragments of one warp, lane = 4 g + t:
//   a (16, 8): (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4);  b (8, 8): (t, g), (t + 4, g);
//   c (16, 8): (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
using Sums = float4;  // a lane's four sums
__device__ __forceinline__ Sums operator+(const Sums& a, const Sums& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
__device__ __forceinline__ Sums rectified(const Sums& a) {
  return {fmaxf(a.x, 0.0f), fmaxf(a.y, 0.0f), fmaxf(a.z, 0.0f), fmaxf(a.w, 0.0f)};
}
// A lane's sums → memory; `to`: the place of the first.
__device__ __forceinline__ void put_sums(float* to, int stride, const Sums& c) {
  *reinterpret_cast<float2*>(to) = make_float2(c.x, c.y);
  *reinterpret_cast<float2*>(to + 8 * stride) = make_float2(c.z, c.w);
}
__device__ __forceinline__ void mma(Sums& c, const float (&a)[4], const float (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w)
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

// Four matrices of 8 rows of 16 bytes in shared memory; lane 8 i + r knows where row r of matrix i begins. A lane
// 4 g + t has of each the word t of row g; transposed, the halves g of rows 2 t and 2 t + 1.
template <bool transposed = false>
__device__ __forceinline__ void load_matrices(unsigned (&words)[4], unsigned row) {
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(row)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(row)
                 : "memory");
}

// Two numbers as halves, which have tf32's ten bits of mantissa; beyond 65504 they stay there.
__device__ __forceinline__ unsigned packed(float low, float high) {
  unsigned word;
  asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// The same in halves, lane = 4 g + t, two neighbours k, k + 1 per word:
//   a (16, 16): (g, 2 t), (g + 8, 2 t), (g, 2 t + 8), (g + 8, 2 t + 8);  b (16, 8): (2 t, g), (2 t + 8, g);  c as above
__device__ __forceinline__ void mma_halves(Sums& c, const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// and with half of k: a (16, 8): (g, 2 t), (g + 8, 2 t);  b (8, 8): (2 t, g)
__device__ __forceinline__ void mma_halves(Sums& c, unsigned a0, unsigned a1, unsigned b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w)
      : "r"(a0), "r"(a1), "r"(b));
}

// An operand ready for the tensor cores: in tf32 it must have been rounded already.
template <Math math, int count>
struct Operand {
  float high[count], low[math == Math::fp32 ? count : 1];

  Operand() = default;
  template <class... Float>
  __device__ __forceinline__ explicit Operand(float first, Float... others) {
    int i = 0;
    set(i++, first);
    (set(i++, others), ...);
  }
  __device__ __forceinline__ void set(int i, float x) {
    if constexpr (math == Math::tf32) {
      high[i] = x;
    } else {
      // As to_tf32, except NaNs, which `low` handles. What is cut off `low` is beyond a float's precision.
      high[i] = cut(__uint_as_float(__float_as_uint(x) + 0x1000u));
      low[i] = cut(x - high[i]);
    }
  }
};

template <Math math>
__device__ __forceinline__ void multiply_add(Sums& c, const Operand<math, 4>& a, const Operand<math, 2>& b) {
  if constexpr (math == Math::fp32) {
    mma(c, a.low, b.high);
    mma(c, a.high, b.low);
  }
  mma(c, a.high, b.high);
}

}  // namespace hone::cuda
