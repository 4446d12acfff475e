#pragma once

#include <memory>

#include "hone/assess/refined_draws.hpp"
#include "hone/base/parallel.hpp"

namespace hone {

// The longest trajectories that pilots try: at most `steps` leapfrog steps of this size.
struct Pilots {
  double step_size;
  int steps;
};

// The mean number of leapfrog steps that gives trajectories of random length (uniform on 1 … twice the mean) the
// largest squared distance from their start per gradient. Each pilot (evaluated) runs one trajectory; the result is the
// median over pilots.
int paying_length(const Target& target, Chains pilots, const Pilots& how, const RandomSource& random, Team& team);

// Kernel and step size of a refinement. They are frozen within a round and adapt between rounds.
class KernelTuning {
 public:
  explicit KernelTuning(const RefinedConfig& config);

  // Tries short trajectories of some of the chains (evaluated), and chooses step size and length.
  void begin(const Target& target, const Chains& chains, Team& team);
  // The same in other coordinates: nothing that was found so far counts.
  void begin_anew(const Target& target, const Chains& chains, Team& team);

  // What a round was like.
  struct Round {
    int burn_in;  // steps before the first state that counts
    int steps;    // of these states
    double steps_per_draw;
    double draws_per_chain;
    double draws_per_state;  // near 1 where states are thinned so much that they hide how fast chains mix
  };
  // After a round whose states are not used: the step size follows its acceptance, and stays well below one at which
  // trajectories diverged. Trajectories keep their length where it shrinks for that.
  void adapt(const ChainChecks& checks, const Round& round);

  const std::shared_ptr<const Kernel>& kernel() const { return kernel_; }
  double step_size() const { return step_size_; }
  double most_step_size() const { return most_step_size_; }

 private:
  void search(const Target& target, const Chains& chains, Team& team);
  void begin_long(const Target& target, const Chains& pilots, const Pilots& how, const RandomSource& random,
                  Team& team);
  void set_length(int length);
  void adapt_length(const Round& round);

  const RefinedConfig* config_;
  std::shared_ptr<const Kernel> kernel_;
  double step_size_ = 0, most_step_size_;
  double last_cost_ = 0;         // of an effective draw, before the trajectories were made longer
  bool length_settled_ = false;  // longer trajectories did not pay
};

}  // namespace hone
