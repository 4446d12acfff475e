#pragma once

#include "hone/tensor/simd.hpp"

namespace hone {

// What one core does at most, in GFLOP/s, measured now: independent fused multiply-adds of a level (multiplications and
// additions at the portable level) and nothing else. The best of several short runs, about a tenth of a second in all.
double measure_fma_peak(SimdLevel level = simd_level());
double measure_bf16_peak();

}  // namespace hone
