#pragma once

#include <memory>

#include "hone/engine/engine_internals.hpp"

namespace hone {

// The cpu engine, as make_engine makes it.
std::unique_ptr<Engine> make_cpu_engine(const TrainConfig& config, const DataSet& train, EngineOptions options,
                                        EngineInternals internals = {});

}  // namespace hone
