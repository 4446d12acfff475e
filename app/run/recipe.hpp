#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/run/train_config.hpp"
#include "hone/base/ranks.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

// A text from which every rank makes the same engine: the resolved configuration, a run per seed, and the instruction
// level or the cuda engine's device, on which the bits depend.
std::string recipe_of(const TrainRunConfig& config, const std::vector<std::uint64_t>& seeds);

// Throws InputError if this rank's instruction level or device is another one.
std::unique_ptr<Engine> engine_of(const std::string& recipe, const DataSet& train, Ranks& ranks);

}  // namespace hone
