#pragma once

#include <immintrin.h>

#include "hone/tensor/kernel.hpp"

namespace hone::kernel {
namespace {

struct Avx512 {
  using Real = float;
  using Element = float;
  using V = __m512;
  using HalfV = __m256;
  using Factors = V;
  static constexpr int lanes = 16;
  static constexpr int half = 8;  // a last vector of 8 rows costs half on CPUs that split 512 bits into two
  static constexpr int dots = 4;
  static constexpr int depth = 1;
  static constexpr int registers = 32;
  static constexpr int vectors = 5, columns = 8;

  static V set(float x) { return _mm512_set1_ps(x); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, V x) { _mm512_storeu_ps(p, x); }
  static HalfV load_half(const float* p) { return _mm256_loadu_ps(p); }
  static void store_half(float* p, HalfV x) { _mm256_storeu_ps(p, x); }
  static V factors(const float* p) { return load(p); }
  static V broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V multiply_add(V factor, V shared, V sum) { return _mm512_fmadd_ps(factor, shared, sum); }
  static HalfV multiply_add_half(const float* p, V shared, HalfV sum) {
    return _mm256_fmadd_ps(load_half(p), _mm512_castps512_ps256(shared), sum);
  }

  static V min(V a, V b) { return _mm512_min_ps(a, b); }
  static V max(V a, V b) { return _mm512_max_ps(a, b); }
  static V where_positive(V h, V a, V b) {
    return _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask(h, _mm512_setzero_ps(), _CMP_GT_OQ), a);
  }
  static V reciprocal(V x) {
    const V guess = _mm512_rcp14_ps(x);
    return _mm512_mul_ps(guess, _mm512_fnmadd_ps(x, guess, set(2)));  // one Newton step
  }
  static V add_to_exponent(V x, V shifted) {
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(x), _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
  }
  static V first(V x, int count) {
    return _mm512_maskz_mov_ps(static_cast<__mmask16>(count > 0 ? (1u << count) - 1 : 0), x);
  }
  static double sum(V x) {
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    return _mm512_reduce_add_pd(_mm512_add_pd(low, high));
  }
  static float element(float x) { return x; }
  static V load_elements(const float* p) { return load(p); }
  static void store_elements(float* p, V x) { store(p, x); }
};

}  // namespace
}  // namespace hone::kernel
