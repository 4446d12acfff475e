#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hone/base/ranks.hpp"
#include "hone/engine/engine.hpp"
#include "hone/engine/message.hpp"

namespace hone {

// Makes the engine of a recipe, a text that the caller understands, with these ranks (EngineInternals::ranks).
using MakeEngine =
    std::function<std::unique_ptr<Engine>(const std::string& recipe, const DataSet& train, Ranks& ranks)>;

// Rank 0 leads: it decides what is done, reads and writes all files, and calls engines as if it were alone. The other
// ranks follow: they make the same engines, with the data that rank 0 sends, and the same calls.
class Lead {
 public:
  Lead(Ranks& ranks, MakeEngine make);
  ~Lead();
  Lead(const Lead&) = delete;
  Lead& operator=(const Lead&) = delete;

  int ranks() const;

  // An engine whose calls reach all ranks; it must not outlive this. `train` must outlive it. Throws what `make`
  // throws; an Error that names rank and host if only another rank failed.
  std::unique_ptr<Engine> engine(const std::string& recipe, const DataSet& train);

  // Seconds that this rank has spent exchanging numbers, including waits for the others.
  double exchange_seconds() const;

  void end();  // all ranks stop following; the last call
  // Whether the others wait for the next call. If not, a call failed in the middle and they wait for the rest of it:
  // the job must be aborted.
  bool in_step() const;

 private:
  class LedEngine;
  class TimedRanks;

  std::unique_ptr<TimedRanks> ranks_;
  MakeEngine make_;
  std::uint32_t engines_ = 0;
  bool in_step_ = true;
};

// What the other ranks do until `end`. Throws Error if a call fails here and not on rank 0: abort then.
void follow(Ranks& ranks, const MakeEngine& make);

}  // namespace hone
