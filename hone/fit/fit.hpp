#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hone/base/parallel.hpp"
#include "hone/base/random.hpp"
#include "hone/family/family.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/objective/objective.hpp"
#include "hone/optim/optimizer.hpp"
#include "hone/target/target.hpp"

namespace hone {

struct FitConfig {
  ObjectiveConfig objective;
  KernelConfig kernel;
  RefineConfig refine;
  OptimizerConfig optimizer;
  int draws_per_iteration = 1;  // of every component of q
  int threads = 1;
  // No θ-step is taken from refinements accepted less often than this: a chain that does not move makes any q look
  // good.
  double least_acceptance = 0;
  // Nor where a larger share of the draws lies outside the support: the rest do not know of it, and would leave too.
  double most_dropped = 1;
};

// What one iteration saw. Its values are one-iteration estimates made before θ moved.
struct FitStep {
  std::uint32_t iteration = 0;
  double elbo = 0;
  double vcd = 0;         // 0 where the objective does not refine
  double acceptance = 0;  // likewise
};

// Algorithm 1 of the paper: fits q to one target. Nothing is allocated after the first step.
class Fit {
 public:
  // Target, family and random source must outlive the fit. Throws InputError where the configuration is impossible.
  Fit(const Target& target, Family& family, const FitConfig& config, const RandomSource& random);

  // One iteration: draw, refine, estimate the gradient, update the control variate, move θ.
  // Throws Error where a parameter is no longer finite.
  const FitStep& step();

  std::uint32_t iteration() const { return last_.iteration; }
  double step_size() const { return refiner_.step_size(); }
  double baseline() const { return objective_->baseline(); }
  std::int64_t rejected_nonfinite() const { return rejected_nonfinite_; }  // proposals
  std::int64_t dropped_draws() const { return dropped_draws_; }            // draws of q outside the support
  std::int64_t skipped_steps() const { return skipped_steps_; }            // see least_acceptance, most_dropped
  std::span<const double> ascent() const { return ascent_; }               // the last step's gradient
  const Evidence& evidence() const { return evidence_; }                   // the last step's draws

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
  Optimizer optimizer_;
  Evidence evidence_;
  std::vector<double> ascent_;
  double least_acceptance_, most_dropped_;
  FitStep last_;
  std::int64_t rejected_nonfinite_ = 0;
  std::int64_t dropped_draws_ = 0;
  std::int64_t skipped_steps_ = 0;
};

}  // namespace hone
