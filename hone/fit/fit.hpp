#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hone/base/parallel.hpp"
#include "hone/base/random.hpp"
#include "hone/family/family.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/objective/vcd.hpp"
#include "hone/optim/optimizer.hpp"
#include "hone/target/target.hpp"

namespace hone {

/// Everything that defines a fit.
struct FitConfig {
  std::shared_ptr<const Objective> objective = std::make_shared<Vcd>();  ///< which gradient θ follows
  std::shared_ptr<const Kernel> kernel = std::make_shared<Hmc>();        ///< the MCMC kernel
  RefineConfig refine;                                                   ///< the refinement
  OptimizerConfig optimizer;                                             ///< how θ moves
  int draws_per_iteration = 1;                                           ///< of every component of q
  int threads = 1;                                                       ///< results do not depend on it
  /// θ stays where it is after a refinement with a lower acceptance than this: a chain that does not move makes any q
  /// look good.
  double least_acceptance = 0;
  /// θ also stays where it is if more than this share of the draws lies outside the support.
  double most_dropped = 1;
};

/// What one iteration saw. Its values are one-iteration estimates made before θ moved.
struct FitStep {
  std::uint32_t iteration = 0;  ///< counted from 1
  double elbo = 0;              ///< estimate of the ELBO
  double vcd = 0;               ///< 0 where the objective does not refine
  double acceptance = 0;        ///< 0 where the objective does not refine
};

/// Algorithm 1 of the paper: fits q to one target. Nothing is allocated after the first step.
class Fit {
 public:
  /// Target, family and random source must outlive the fit; it works on clones of objective and kernel. `optimizer` is
  /// one of your own; null: the one that config.optimizer describes. Throws InputError if the configuration is
  /// impossible.
  Fit(const Target& target, Family& family, const FitConfig& config, const RandomSource& random,
      std::unique_ptr<Optimizer> optimizer = nullptr);

  /// One iteration: draw, refine, estimate the gradient, update the control variate, move θ.
  /// Throws Error where a parameter is no longer finite.
  const FitStep& step();

  /// Iterations made so far.
  std::uint32_t iteration() const { return last_.iteration; }
  /// The kernel's current step size.
  double step_size() const { return refiner_.step_size(); }
  /// The control variate, if it is one number.
  double baseline() const { return objective_->baseline(); }
  std::int64_t rejected_nonfinite() const { return rejected_nonfinite_; }  ///< proposals
  std::int64_t dropped_draws() const { return dropped_draws_; }            ///< draws of q outside the support
  std::int64_t skipped_steps() const { return skipped_steps_; }            ///< see least_acceptance, most_dropped
  std::span<const double> ascent() const { return ascent_; }               ///< the last step's gradient
  const Evidence& evidence() const { return evidence_; }                   ///< the last step's draws

 private:
  void sample(std::uint32_t iteration);
  void refine(std::uint32_t iteration);
  void check_finite() const;

  const Target& target_;
  Family& family_;
  const RandomSource& random_;
  Team team_;
  Refiner refiner_;
  std::unique_ptr<Objective> objective_;
  bool analytic_;
  std::unique_ptr<Optimizer> optimizer_;
  Evidence evidence_;
  std::vector<double> ascent_;
  double least_acceptance_, most_dropped_;
  FitStep last_;
  std::int64_t rejected_nonfinite_ = 0;
  std::int64_t dropped_draws_ = 0;
  std::int64_t skipped_steps_ = 0;
};

}  // namespace hone
