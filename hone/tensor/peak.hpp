#pragma once

#include "hone/base/parallel.hpp"
#include "hone/tensor/simd.hpp"

namespace hone {

// The peak speed of one core in GFLOP/s, measured now: independent fused multiply-adds of a level (multiplications and
// additions at the portable level) and nothing else. The best of several short runs, about 0.1 s in all.
double measure_fma_peak(SimdLevel level = simd_level());
double measure_bf16_peak();

// The rate that all threads of a team reach together, on average over 0.05 s: lower than the sum of single cores if
// they share units, if the clock slows down, or if the machine has other work.
double measure_fma_peak_together(Team& team, SimdLevel level = simd_level());

}  // namespace hone
