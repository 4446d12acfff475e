#include "hone/tensor/level_portable.hpp"

#include "hone/tensor/kernel.hpp"
#include "hone/tensor/levels.hpp"

namespace hone::kernel {

constinit const Kernels<float> portable_kernels = kernels<Portable<float>>();
constinit const Kernels<double> double_kernels = kernels<Portable<double>>();

}  // namespace hone::kernel
