#pragma once

#include <optional>
#include <string>

#include "app/run/methods.hpp"
#include "app/run/settings.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/optim/optimizer.hpp"

namespace hone {

// The settings of the method itself, which every kind of run has under the same keys.

// objective (one of `kinds`), alpha, estimator, first_term, entropy, baseline_decay
void add_objective_settings(Settings& settings, ObjectiveConfig& config, const Choices<ObjectiveKind>& kinds);

// kernel, steps, leapfrog, leapfrog_jitter, adapt, step_size, acceptance
struct RefinementVariables {
  KernelConfig& kernel;
  int& steps;
  Adapt& adapt;
  std::optional<double>& step_size;
  std::optional<double>& acceptance;
  std::string acceptance_default;
};
void add_refinement_settings(Settings& settings, const RefinementVariables& variables);

// Throws KeyError if a setting that the others make useless differs from its default.
void check_used(const ObjectiveConfig& objective, const KernelConfig& kernel);

// optimizer, rate_mean, rate_scale, rate_decay, decay_every
struct OptimizerVariables {
  OptimizerKind& kind;
  double& rate_mean;
  double& rate_scale;
  double& rate_decay;
  std::uint32_t& decay_every;
};
void add_optimizer_settings(Settings& settings, const OptimizerVariables& variables);

void add_seed_setting(Settings& settings, std::uint64_t& seed);

}  // namespace hone
