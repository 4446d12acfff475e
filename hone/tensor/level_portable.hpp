#pragma once

// Vectors of 16 bytes by the compiler's vector extension: SSE2 on x86-64, NEON on ARM.

#include <cstddef>
#include <cstdint>

namespace hone::kernel {
namespace {

template <class RealType>
struct Portable {
  using Real = RealType;
  using Element = Real;
  typedef Real V __attribute__((vector_size(16)));
  typedef std::int32_t Bits __attribute__((vector_size(16)));
  using HalfV = V;
  using Factors = V;
  static constexpr int lanes = 16 / sizeof(Real);
  static constexpr int half = 0;
  static constexpr int dots = 0;
  static constexpr int depth = 1;
  static constexpr int registers = 12;
  static constexpr int vectors = 2, columns = 4;

  static V set(Real x) { return x - V{}; }
  static V load(const Real* p) {
    V x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(Real* p, V x) { __builtin_memcpy(p, &x, sizeof x); }
  static V factors(const Element* p) { return load(p); }
  static V broadcast(const Element* p) { return set(*p); }
  static V fma(V a, V b, V c) { return a * b + c; }
  static V multiply_add(V factor, V shared, V sum) { return factor * shared + sum; }

  // Where one operand is not a number, the second is the result.
  static V min(V a, V b) { return a < b ? a : b; }
  static V max(V a, V b) { return a > b ? a : b; }
  static V where_positive(V h, V a, V b) { return h > V{} ? a : b; }
  static V reciprocal(V x) { return set(1) / x; }
  static V add_to_exponent(V x, V shifted) {
    return reinterpret_cast<V>(reinterpret_cast<Bits>(x) + (reinterpret_cast<Bits>(shifted) << 23));
  }
  static V first(V x, int count) {
    for (int i = count > 0 ? count : 0; i < lanes; ++i) x[i] = 0;
    return x;
  }
  static double sum(V x) {
    double total = 0;
    for (int i = 0; i < lanes; ++i) total += static_cast<double>(x[i]);
    return total;
  }
  static Element element(Real x) { return x; }
  static V load_elements(const Element* p) { return load(p); }
  static void store_elements(Element* p, V x) { store(p, x); }
};

}  // namespace
}  // namespace hone::kernel
