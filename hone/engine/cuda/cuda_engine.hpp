#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hone/engine/config.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

// Trains and evaluates on the first device, one run per seed and all side by side; without seeds, one run with
// config.seed. Does what the cpu engine does, with the same random numbers, in tf32 (the default) or float32. Throws
// KeyError if there is no device or if only the cpu engine supports the configuration.
std::unique_ptr<Engine> make_cuda_engine(const TrainConfig& config, const DataSet& train,
                                         const std::vector<std::uint64_t>& seeds = {});

}  // namespace hone
