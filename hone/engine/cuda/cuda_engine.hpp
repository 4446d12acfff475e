#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hone/base/ranks.hpp"
#include "hone/engine/config.hpp"
#include "hone/engine/engine.hpp"
#include "hone/engine/engines.hpp"

namespace hone {

// Trains and evaluates on a device, one run per seed and all side by side; without seeds, one run with config.seed.
// Does what the cpu engine does, with the same random numbers, in tf32 (the default) or float32. All `ranks` train the
// same runs, each on its device, with the same bits. They share the data of evaluations and, where the refinement of a
// single run goes by products, those of minibatches. The device is chosen for the calling thread, which makes all
// calls. Throws KeyError if there is no device or if only the cpu engine supports the configuration.
std::unique_ptr<Engine> make_cuda_engine(const TrainConfig& config, const DataSet& train,
                                         const std::vector<std::uint64_t>& seeds = {}, Ranks* ranks = nullptr);

// What cuda_support() returns.
CudaSupport find_cuda();

}  // namespace hone
