#pragma once

#include "hone/tensor/product.hpp"

// The kernels of every instruction level in this build; simd.hpp chooses among them.
namespace hone::kernel {

extern const Kernels<float> portable_kernels;
extern const Kernels<double> double_kernels;
#ifdef HONE_X86_LEVELS
extern const Kernels<float> avx2_kernels;
extern const Kernels<float> avx512_kernels;
extern const Kernels<Bf16> bf16_kernels;
#endif

}  // namespace hone::kernel
