#pragma once

#include <string_view>

#include "hone/tensor/product.hpp"

namespace hone {

// Instruction levels of the float products: vectors of 4, 8 and 16 floats.
enum class SimdLevel { portable, avx2, avx512 };

std::string_view name_of(SimdLevel level);
bool supported(SimdLevel level);  // by this build and this CPU

// The highest level supported, or the one that the environment variable HONE_SIMD names (portable, avx2 or avx512).
// Read once. Throws InputError if HONE_SIMD names something else or a level that is not supported.
SimdLevel simd_level();

// Bytes of weights that products may keep in the nearest cache while columns pass by, or 0 if that does not pay: a core
// with 48 KiB there (Ice Lake, Zen 5 and later) computes faster than its next cache delivers, others do not.
int near_weight_bytes();

// Whether Bf16 products are available: AVX512-BF16, at level avx512.
bool supports_bf16(SimdLevel level = simd_level());

// The kernels for a type of number at a level. Doubles have only portable kernels, whatever the level. For Bf16, throws
// InputError if the CPU has no such products or a lower level was forced.
template <class Element>
const Kernels<Element>& kernels_of(SimdLevel level = simd_level());
template <>
const Kernels<float>& kernels_of<float>(SimdLevel level);
template <>
const Kernels<double>& kernels_of<double>(SimdLevel level);
template <>
const Kernels<Bf16>& kernels_of<Bf16>(SimdLevel level);

}  // namespace hone
