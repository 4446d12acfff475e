#pragma once

#include "hone/tensor/simd.hpp"

namespace hone {

// The peak speed of one core in GFLOP/s, measured now: independent fused multiply-adds of a level (multiplications and
// additions at the portable level) and nothing else. The best of several short runs, about 0.1 s in all.
double measure_fma_peak(SimdLevel level = simd_level());
double measure_bf16_peak();

}  // namespace hone
