#include "hone/tensor/simd.hpp"

#include <unistd.h>

#include <string>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/tensor/levels.hpp"

namespace hone {
namespace {

SimdLevel choose_level() {
  const std::string forced = environment("HONE_SIMD");
  for (const SimdLevel level : {SimdLevel::avx512, SimdLevel::avx2, SimdLevel::portable}) {
    if (forced.empty() && supported(level)) return level;
    if (forced != name_of(level)) continue;
    if (supported(level)) return level;
    throw InputError("HONE_SIMD asks for " + forced + ", which this CPU or this build does not have");
  }
  throw InputError("HONE_SIMD is '" + forced + "'; it may be portable, avx2 or avx512");
}

}  // namespace

std::string_view name_of(SimdLevel level) {
  switch (level) {
    case SimdLevel::portable:
      return "portable";
    case SimdLevel::avx2:
      return "avx2";
    case SimdLevel::avx512:
      return "avx512";
  }
  throw Error("unknown instruction level");
}

SimdLevel simd_level() {
  static const SimdLevel level = choose_level();
  return level;
}

int near_weight_bytes() {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  static const long cache = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  return cache >= 48 * 1024 ? 32 * 1024 : 0;
#else
  return 0;
#endif
}

#ifdef HONE_X86_LEVELS

bool supported(SimdLevel level) {
  switch (level) {
    case SimdLevel::portable:
      return true;
    case SimdLevel::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case SimdLevel::avx512:
      return supported(SimdLevel::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  }
  return false;
}

bool supports_bf16(SimdLevel level) { return level == SimdLevel::avx512 && __builtin_cpu_supports("avx512bf16"); }

template <>
const Kernels<float>& kernels_of<float>(SimdLevel level) {
  return level == SimdLevel::avx512 ? kernel::avx512_kernels
         : level == SimdLevel::avx2 ? kernel::avx2_kernels
                                    : kernel::portable_kernels;
}

#else

bool supported(SimdLevel level) { return level == SimdLevel::portable; }
bool supports_bf16(SimdLevel) { return false; }

template <>
const Kernels<float>& kernels_of<float>(SimdLevel) {
  return kernel::portable_kernels;
}

#endif

template <>
const Kernels<double>& kernels_of<double>(SimdLevel) {
  return kernel::double_kernels;
}

template <>
const Kernels<Bf16>& kernels_of<Bf16>(SimdLevel level) {
#ifdef HONE_X86_LEVELS
  if (supports_bf16(level)) return kernel::bf16_kernels;
#endif
  throw InputError("bf16 products need a CPU with AVX512-BF16 and the instruction level avx512, but " +
                   std::string(level == SimdLevel::avx512 ? "this CPU does not have them" : "the level is ") +
                   std::string(level == SimdLevel::avx512 ? "" : name_of(level)));
}

}  // namespace hone
