#pragma once

#include <memory>

#include "hone/engine/cuda/cuda_engine.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

// What `automatic` means for a configuration on this machine: cuda where it can be had and takes it, else cpu.
EngineKind chosen_engine(EngineKind kind, const TrainConfig& config);

// An engine of a kind that has been chosen. The options but for the threads are for the cpu engine alone.
std::unique_ptr<Engine> make_engine(EngineKind kind, const TrainConfig& config, const DataSet& train,
                                    EngineOptions options);

}  // namespace hone
