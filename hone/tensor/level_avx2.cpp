#include <immintrin.h>

#include "hone/tensor/kernel.hpp"
#include "hone/tensor/levels.hpp"

namespace hone::kernel {
namespace {

struct Avx2 {
  using Real = float;
  using Element = float;
  using V = __m256;
  using HalfV = V;
  using Factors = V;
  static constexpr int lanes = 8;
  static constexpr int half = 0;
  static constexpr int dots = 2;
  static constexpr int depth = 1;
  static constexpr int registers = 16;
  static constexpr int vectors = 3, columns = 8;

  static V set(float x) { return _mm256_set1_ps(x); }
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, V x) { _mm256_storeu_ps(p, x); }
  static V factors(const float* p) { return load(p); }
  static V broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V multiply_add(V factor, V shared, V sum) { return _mm256_fmadd_ps(factor, shared, sum); }

  static V min(V a, V b) { return _mm256_min_ps(a, b); }
  static V max(V a, V b) { return _mm256_max_ps(a, b); }
  static V where_positive(V h, V a, V b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(h, _mm256_setzero_ps(), _CMP_GT_OQ));
  }
  static V reciprocal(V x) { return _mm256_div_ps(set(1), x); }
  static V add_to_exponent(V x, V shifted) {
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
  }
  static V first(V x, int count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_and_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane)), x);
  }
  static double sum(V x) {
    const __m256d pairs =
        _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
    return (pairs[0] + pairs[1]) + (pairs[2] + pairs[3]);
  }
  static float element(float x) { return x; }
  static V load_elements(const float* p) { return load(p); }
  static void store_elements(float* p, V x) { store(p, x); }
};

}  // namespace

constinit const Kernels<float> avx2_kernels = kernels<Avx2>();

}  // namespace hone::kernel
