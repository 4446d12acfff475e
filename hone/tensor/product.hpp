#pragma once

#include <cstddef>
#include <cstdint>

#include "hone/base/constants.hpp"

namespace hone {

// The upper 16 bits of a float. Sums of products of such numbers are floats.
struct Bf16 {
  std::uint16_t bits;
};

// Rounds to nearest, ties to even. Static: kernel.hpp says why.
static inline Bf16 to_bf16(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;  // a NaN stays one
  return {static_cast<std::uint16_t>((bits & 0x7FFF'FFFFu) > 0x7F80'0000u ? quiet : rounded)};
}

template <class Element>
struct SumOf {
  using Type = Element;
};
template <>
struct SumOf<Bf16> {
  using Type = float;
};
template <class Element>
using Sum = typename SumOf<Element>::Type;

// What is done to a = (weights · x + bias) before it is stored.
enum class Finish {
  linear,
  sum,  // a itself, unrounded, in Product::sum
  relu,
  tanh,
  softplus,
  derivative_relu,  // a · act'(·), computed from h, the value of the activation
  derivative_tanh,
  derivative_softplus,
  bernoulli,  // residual d log p(x | a) / da of a datum x with natural parameter a; log p(x | a) if wanted
  gaussian,   // variance gaussian_variance
  poisson,    // rate by the modified softplus; log p without − log x!
};

// The kernels below take raw pointers; other code calls layer.hpp. Columns start `stride` elements apart and may be
// read and written up to padded(rows): see batch.hpp.
template <class Element>
struct Product {
  int depth;                 // K, inputs of the product
  int units;                 // M, rows of the result
  int columns;               // n
  const Element* weights;    // packed, (M, K), at a multiple of 64 bytes
  const Sum<Element>* bias;  // (padded M)
  const Element* x;          // (K, n)
  std::size_t x_stride;
  Element* y;  // (M, n)
  std::size_t y_stride;
  Finish finish = Finish::linear;
  int near_bytes = 0;           // of weights that the nearest cache holds beside the rest; 0: does not matter
  Sum<Element>* sum = nullptr;  // Finish::sum: (M, n), with the stride of y; y may then be null
  const Element* h = nullptr;   // derivative_*: (M, n), with the stride of y
  // bernoulli, gaussian, poisson: column c of y belongs to column datum[c] of data.
  const Sum<Element>* data = nullptr;
  std::size_t data_stride = 0;
  const std::uint32_t* datum = nullptr;
  const Sum<Element>* observed = nullptr;  // unless null: 0 where data is missing, else 1; with the stride of data
  double* value = nullptr;                 // unless null: value[c] += Σ log p(x | a)
};

// gradient (in, out), one row per input unit, = Σ_c x_c dy_cᵀ for the rows [begin, end). With `onto` the sums go on
// from what the gradient holds: in two calls, over the first columns and over the others, they have the bits of one
// call.
template <class Real>
struct OuterProduct {
  int units;      // out
  int columns;    // n
  const Real* x;  // (in, n)
  std::size_t x_stride;
  const Real* dy;  // (out, n)
  std::size_t dy_stride;
  int begin, end;
  Real* gradient;
  bool onto = false;
};

// A matrix to be packed for a kernel: element (unit, k) is from[unit * unit_stride + k * depth_stride]. One of the
// strides is 1.
template <class Element>
struct Packing {
  int units;
  int depth;
  const Sum<Element>* from;
  std::size_t unit_stride;
  std::size_t depth_stride;
  int part = 0, parts = 1;  // threads share the work
};

// The kernels of one instruction level. They write only what their arguments name. A column's result depends on that
// column alone, bit for bit: not on its place in the batch and not on the number of columns.
template <class Element>
struct Kernels {
  std::size_t (*packed_size)(int units, int depth);
  void (*pack)(const Packing<Element>& packing, Element* packed);
  void (*multiply)(const Product<Element>& product);
  void (*outer_product)(const OuterProduct<Sum<Element>>& product);  // none for Bf16
  double (*fused_multiply_adds)(long rounds);                        // see peak.hpp
  double flops_per_round;
};

}  // namespace hone
