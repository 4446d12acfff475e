#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hone/base/ranks.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

// Makes the engine of some of the runs, in this process alone.
using MakeOwnRuns = std::function<std::unique_ptr<Engine>(std::vector<std::uint64_t> seeds)>;

// An engine whose runs are handed out whole: each rank trains its share of them by itself, and all ranks hear what came
// of it. All ranks make all calls. `step_size` is the one that runs begin with. Throws what `make` throws.
std::unique_ptr<Engine> make_whole_runs(const std::vector<std::uint64_t>& seeds, double step_size, Ranks& ranks,
                                        const MakeOwnRuns& make);

}  // namespace hone
