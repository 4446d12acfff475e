#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hone/engine/engine.hpp"

namespace hone {

struct CudaDevice {
  std::string name;
  int major, minor;  // compute capability
  int multiprocessors;
  std::size_t memory;  // bytes
};

// The devices that the cuda engine could use, or why there are none.
struct CudaSupport {
  std::vector<CudaDevice> devices;
  std::string missing;  // empty: the engine can be made
};
CudaSupport cuda_support();

// Trains and evaluates on the first device: as the cpu engine does, with the same random numbers, in tf32 (default) or
// float32. InputError where there is no device or the configuration is one that only the cpu engine takes.
std::unique_ptr<Engine> make_cuda_engine(const TrainConfig& config, const DataSet& train);

// Likewise for runs side by side, one a seed; config.seed is not used.
std::unique_ptr<EngineGroup> make_cuda_group(const TrainConfig& config, const DataSet& train,
                                             const std::vector<std::uint64_t>& seeds);

}  // namespace hone
