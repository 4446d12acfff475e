#include "hone/tensor/level_avx512.hpp"

#include "hone/tensor/levels.hpp"

namespace hone::kernel {

constinit const Kernels<float> avx512_kernels = kernels<Avx512>();

}  // namespace hone::kernel
