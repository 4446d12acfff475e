#include "hone/engine/cuda/device/launch.cuh"

namespace hone::cuda {
namespace {

__global__ void any_kernel() {}  // compiled for the same architectures as all others

}  // namespace

bool has_clusters() {
  cudaFuncAttributes code;
  check(cudaFuncGetAttributes(&code, any_kernel), "asking for the code of a kernel");
  return device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9 && code.ptxVersion >= 90;
}

int cluster_shared_memory() { return has_clusters() ? device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) : 0; }

}  // namespace hone::cuda
