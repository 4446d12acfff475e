#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hone/engine/engine.hpp"
#include "hone/engine/lead.hpp"
#include "hone/target/shared_posterior.hpp"

namespace hone {

// The time of an iteration in this process alone and on all ranks, and what follows from it.
struct RankPaces {
  struct Time {                    // in milliseconds
    double all = 0, exchange = 0;  // exchanging numbers with other ranks, and waiting for them
  };
  Time alone, shared;

  // Whether `runs` runs should train side by side, each whole on one rank, and not one after another on all ranks.
  bool whole(int runs, int ranks) const;
  // For the user, with a warning where ranks are slower than one process or have nothing to do.
  std::string words(int runs, int ranks) const;
};

// Times some iterations of engines with a single run; `make` makes them, without ranks or with this lead. Nothing if
// the ranks of such an engine do not share iterations.
std::optional<RankPaces> time_ranks(Lead& lead, const std::function<std::unique_ptr<Engine>(Lead*)>& make);

// What ranks bring to a fit, for the user, with a warning where they are slower than one process.
std::string words(const SharedPace& pace);

}  // namespace hone
