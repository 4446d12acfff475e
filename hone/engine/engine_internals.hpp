#pragma once

#include <functional>
#include <memory>

#include "hone/engine/engines.hpp"

namespace hone {

class Ranks;           // base/ranks.hpp
struct IterationView;  // cpu/iteration.hpp

// What the program and the tests ask of an engine beyond EngineOptions. Not installed.
struct EngineInternals {
  // Processes that share the work; all make the same calls. They share the data of a single run
  // (Engine::ranks_share_iterations); each of several runs belongs to one rank, and `save` gives its state to that rank
  // and to rank 0. Null: this process alone.
  Ranks* ranks = nullptr;
  // Called in every iteration of a single run on the cpu engine, before the update.
  std::function<void(const IterationView&)> observe = {};
};

// As the make_engine of the API. An observer has the same limits as a replay.
std::unique_ptr<Engine> make_engine(EngineKind kind, const TrainConfig& config, const DataSet& train,
                                    EngineOptions options, EngineInternals internals);

}  // namespace hone
