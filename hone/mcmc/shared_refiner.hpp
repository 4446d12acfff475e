#pragma once

#include "hone/mcmc/refine.hpp"

namespace hone {

// A Refiner whose chains the ranks share: each moves its own, and all know the acceptance of every chain. Null: this
// process moves all chains. The ranks must outlive it.
class SharedRefiner : public Refiner {
 public:
  SharedRefiner(const Kernel& kernel, const RefineConfig& config, Team& team, Ranks* ranks)
      : Refiner(kernel, config, team) {
    ranks_ = ranks;
  }
};

}  // namespace hone
