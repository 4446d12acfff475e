#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hone/base/parallel.hpp"
#include "hone/mcmc/kernel.hpp"

namespace hone {

class Ranks;  // base/ranks.hpp

/// When the step size follows the acceptance.
enum class Adapt {
  inside,   ///< after the first steps of a refinement, by the accepted fraction: the authors' way. The kernel then
            ///< depends on the chains that it moves: slightly not invariant, and the chains are coupled
  between,  ///< after a refinement, by the mean acceptance probability; frozen within: eq. gradient_term2 holds
  off,
};

/// How many steps a refinement has, and how its step size adapts.
struct RefineConfig {
  int steps = 3;                 ///< t
  Adapt adapt = Adapt::between;  ///< when the step size adapts
  double step_size = 0.25;       ///< at the start: ε of hmc, δ of mala and random-walk
  double acceptance = -1;        ///< a*, what the controller aims at; −1: the kernel's default_acceptance()
  int adapting = -1;             ///< inside: steps that are followed by an adaptation; −1: all but the last
  double gain = 0.01;            ///< how fast the controller follows

  /// The acceptance that the controller aims at with this kernel.
  double aim(const Kernel& kernel) const { return acceptance == -1 ? kernel.default_acceptance() : acceptance; }
  /// Steps that are followed by an adaptation.
  int adapting_steps() const { return adapting < 0 ? steps - 1 : adapting; }
};

/// Adapts a step size to the acceptance.
class StepSizeController {
 public:
  /// Starts from a step size; `acceptance` is what it aims at.
  StepSizeController(double step_size, double acceptance, double gain = 0.01);
  /// Adapts to an observed acceptance.
  void update(double acceptance);
  /// The current step size.
  double step_size() const { return step_size_; }
  void set_step_size(double step_size) { step_size_ = step_size; }  ///< of a run that goes on

 private:
  double step_size_;
  double start_, acceptance_, gain_;
};

/// What happened to all proposals of a refinement, those of chains outside the support left out.
struct Refinement {
  double acceptance = 0;       ///< mean acceptance probability; 0 where there were no proposals
  std::int64_t proposals = 0;  ///< number of proposals
  std::int64_t nonfinite = 0;  ///< proposals at which the target was not finite
  std::int64_t divergent = 0;  ///< those, and proposals with an energy error above 700: acceptance 0 to rounding
};

/// Runs the kernel t steps on a batch of chains: z0 → z_t (eq. def_improved_q). The step size persists from call to
/// call. Chains are shared out over the team; the result does not depend on its size.
class Refiner {
 public:
  /// Throws InputError if the configuration is impossible. The team must outlive it.
  Refiner(const Kernel& kernel, const RefineConfig& config, Team& team);

  Want wants() const { return kernels_.front()->wants(); }  ///< of the chains at z0
  /// The current step size.
  double step_size() const { return controller_.step_size(); }
  /// Sets the step size, to continue a run.
  void set_step_size(double step_size) { controller_.set_step_size(step_size); }

  /// Moves the chains in place. With Adapt::inside, groups of `group` chains (which divides their number) are refined
  /// one after the other, each going on with the step size that the one before left: a mixture's components in the
  /// authors' code.
  Refinement refine(const Target& target, const ChainsView& chains, int group, std::uint32_t iteration,
                    const RandomSource& random);

 private:
  void refine_group(const Target& target, const ChainsView& chains, std::uint32_t iteration, const RandomSource& random,
                    Refinement& total);

  RefineConfig config_;
  StepSizeController controller_;
  Team& team_;
  friend class SharedRefiner;                     // shared_refiner.hpp
  Ranks* ranks_ = nullptr;                        // who share the chains
  std::vector<std::unique_ptr<Kernel>> kernels_;  // one per thread
};

/// A step size at which a step from `chains` (evaluated; they are not moved) has about the acceptance probability
/// `acceptance` (−1: the kernel's default): doubled or halved from `step_size`, then bisected. Within a factor of 2²⁰
/// of where it began.
double find_step_size(const Target& target, const Kernel& kernel, const Chains& chains, double step_size,
                      double acceptance, const RandomSource& random, Team& team);

}  // namespace hone
