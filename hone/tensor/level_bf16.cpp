#include "hone/tensor/level_avx512.hpp"
#include "hone/tensor/levels.hpp"

namespace hone::kernel {
namespace {

// Pairs of products of 16-bit numbers, summed in float.
struct Avx512Bf16 : Avx512 {
  using Element = Bf16;
  using Factors = __m512bh;
  static constexpr int dots = 0;
  static constexpr int depth = 2;

  static Factors factors(const Bf16* p) { return reinterpret_cast<Factors>(_mm512_loadu_si512(p)); }
  static Factors broadcast(const Bf16* p) {
    std::int32_t pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return reinterpret_cast<Factors>(_mm512_set1_epi32(pair));
  }
  static V multiply_add(Factors factor, Factors shared, V sum) { return _mm512_dpbf16_ps(sum, factor, shared); }
  static HalfV multiply_add_half(const Bf16* p, Factors shared, HalfV sum) {
    const __m256i factor = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i low = _mm512_castsi512_si256(reinterpret_cast<__m512i>(shared));
    return _mm256_dpbf16_ps(sum, reinterpret_cast<__m256bh>(factor), reinterpret_cast<__m256bh>(low));
  }

  static Bf16 element(float x) { return to_bf16(x); }
  static V load_elements(const Bf16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static void store_elements(Bf16* p, V x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
  }
};

}  // namespace

constinit const Kernels<Bf16> bf16_kernels = kernels<Avx512Bf16>();

}  // namespace hone::kernel
