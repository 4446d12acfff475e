#pragma once

#include <memory>
#include <vector>

#include "hone/engine/cuda/cuda_engine.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

// What `automatic` means for a configuration on this machine: cuda where it can be had and takes it, else cpu.
EngineKind chosen_engine(EngineKind kind, const TrainConfig& config);

// An engine of a kind that has been chosen. The options but for the threads are for the cpu engine alone.
std::unique_ptr<Engine> make_engine(EngineKind kind, const TrainConfig& config, const DataSet& train,
                                    EngineOptions options);

// How many of so many runs an engine should train side by side: cuda all, cpu one, since its threads share out one
// minibatch.
int side_by_side(EngineKind kind, int runs);

// A group of so many runs, one a seed, of a kind that has been chosen; config.seed is not used.
std::unique_ptr<EngineGroup> make_engine_group(EngineKind kind, const TrainConfig& config, const DataSet& train,
                                               const std::vector<std::uint64_t>& seeds, int threads);

}  // namespace hone
