#include "hone/engine/cuda/cuda_engine.hpp"

#include "hone/base/error.hpp"
#include "hone/engine/cuda/runs.cuh"

namespace hone {

CudaSupport find_cuda() {
  CudaSupport support;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();
    support.missing = status == cudaErrorInsufficientDriver ? "no NVIDIA driver, or one too old for this build of CUDA"
                      : status == cudaSuccess               ? "no device"
                                                            : cudaGetErrorString(status);
    return support;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p;
    cuda::check(cudaGetDeviceProperties(&p, i), "asking for the devices");
    support.devices.push_back({.name = p.name,
                               .major = p.major,
                               .minor = p.minor,
                               .multiprocessors = p.multiProcessorCount,
                               .memory = p.totalGlobalMem});
  }
  support.own = static_cast<std::size_t>(local_rank() % count);
  if (support.own_device().major < 8) support.missing = "the device is of compute capability below 8.0";
  return support;
}

std::unique_ptr<Engine> make_cuda_engine(const TrainConfig& config, const DataSet& train,
                                         const std::vector<std::uint64_t>& seeds, Ranks* ranks) {
  const CudaSupport support = cuda_support();
  if (!support.missing.empty()) throw KeyError("engine", "cuda: " + support.missing);
  check(config, EngineKind::cuda);
  cuda::check(cudaSetDevice(static_cast<int>(support.own)), "choosing the device");
  return std::make_unique<cuda::Runs>(config, train, seeds.empty() ? std::vector{config.seed} : seeds,
                                      cuda::PathOptions(), ranks);
}

}  // namespace hone
