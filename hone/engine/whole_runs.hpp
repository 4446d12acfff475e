#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/ranks.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

// An error of one rank that all ranks throw, so that they stay in step.
class SharedError : public Error {
 public:
  using Error::Error;
};

// Makes the engine of some of the runs, in this process alone.
using MakeOwnRuns = std::function<std::unique_ptr<Engine>(std::vector<std::uint64_t> seeds)>;

// An engine whose runs are handed out whole: each rank trains its share of them by itself and tells all ranks the
// results. All ranks make all calls. If a call throws on the rank that has the run, all ranks throw the same kind with
// the same text, and SharedError if it is neither InputError nor Stopped. `save` gives the state to rank 0 and to the
// rank that has the run, and an empty one to the others. `step_size` is the one that runs begin with. Throws what
// `make` throws.
std::unique_ptr<Engine> make_whole_runs(const std::vector<std::uint64_t>& seeds, double step_size, Ranks& ranks,
                                        const MakeOwnRuns& make);

}  // namespace hone
