#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "hone/assess/kernel_tuning.hpp"
#include "hone/assess/refined_draws.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/random.hpp"
#include "hone/base/statistics.hpp"
#include "hone/mcmc/kernel.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/target/target.hpp"
#include "hone/target/transport_map.hpp"

namespace hone {

// Chains that go on in rounds, each twice as long as all before it, and their kept states: those of the last round,
// which is the second half of their steps, and those of the quarter before it. The first `pairs` chains started at
// draws of q; super-chains of `per_super` follow.
class ChainRounds {
 public:
  // Statistics of the last round.
  struct Course {
    double acceptance = 0;  // mean over its proposals
    std::int64_t proposals = 0, divergences = 0;
    double stuck = 0;  // the share of chains that never moved
    Moments log_p;     // at the kept states, of the density that the chains move in
  };

  // Goes on with evaluated chains; the other arguments must outlive it. `on_power` gets the mean acceptance of the
  // pairs since its last call, after every power of two steps and at the end of a round.
  ChainRounds(const Target& target, const RefinedConfig& config, const RandomSource& random, Team& team, Chains chains,
              int pairs, int per_super, std::function<void(double)> on_power);

  // Goes on to `until` steps.
  void round(int until, const KernelTuning& tuning);
  // Goes on with the same kernel for `longer` more states of every chain, and keeps all that was kept so far.
  void extend(int longer, const KernelTuning& tuning);
  // Goes on with every `part`-th chain, of the pairs and of every super-chain.
  void leave_out(int part);
  // From here on chains move in the coordinates u = T⁻¹(e) of this map. States are kept over e all the same.
  void move_by(std::shared_ptr<const TransportMap> map);

  // Remembers the start of a round that may be given up, and returns to it. `part` is that of leave_out.
  struct Mark;
  Mark mark(int part) const;
  void go_back(Mark mark);
  // The round is complete, and can no longer be given up.
  void complete() { older_ = {}; }

  const Chains& chains() const;                           // over e
  const Chains& moving() const { return place_.chains; }  // where they move: over u, if there is a map
  const Target& target() const { return transported_ ? *transported_ : target_; }  // of these
  const std::shared_ptr<const TransportMap>& map() const { return place_.map; }
  ChainStates& now() { return now_; }        // states of the last round
  ChainStates& before() { return before_; }  // of the quarter before it
  int pairs() const { return place_.pairs; }
  int per_super() const { return place_.per_super; }
  int supers() const { return place_.chains.z.cols() - place_.pairs; }  // chains of the super-chains
  int taken() const { return place_.taken; }                            // steps
  int first_kept() const { return place_.first_kept; }                  // steps before the first state of now()
  int stride() const { return place_.stride; }                          // steps from state to state
  const Course& course() const { return place_.course; }

 private:
  void walk(int until, const KernelTuning& tuning, ChainStates* block);
  ChainStates room_for(int steps, int& stride) const;
  void record(ChainStates& block, int state) const;
  void record_moves(int state, const Kernel& kernel);
  void set_map(std::shared_ptr<const TransportMap> map);

  // Where the chains stand.
  struct Place {
    Chains chains;
    std::shared_ptr<const TransportMap> map;  // none: they move over e
    int pairs, per_super;
    std::vector<int> moved;  // accepted proposals per chain
    int taken = 0, first_kept = 0, stride = 1;
    Course course;
  };

  const Target& target_;
  const RefinedConfig& config_;
  const RandomSource& random_;
  Team& team_;
  std::function<void(double)> on_power_;
  Place place_;
  std::unique_ptr<const Target> transported_;  // of place_.map
  mutable Chains over_e_{0, 0};                // place_.chains, as chains() shows them
  mutable int shown_ = -1;                     // the steps after which over_e_ was made
  ChainStates now_, before_, older_;           // older_: the previous `before_`, until a round is complete
  std::vector<double> value_before_;           // log p where the trajectories of a step begin
  int since_ = 0;                              // steps since the last call of on_power
  double accepted_ = 0;                        // of the pairs, summed over these steps
};

struct ChainRounds::Mark {
  Place place;
  int states;         // of each chain
  ChainStates whole;  // of all chains, where some are to be left out
};

}  // namespace hone
