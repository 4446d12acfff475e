#include "app/run/method_settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hone/base/error.hpp"

namespace hone {

void add_objective_settings(Settings& s, ObjectiveConfig& config, const Choices<ObjectiveKind>& kinds) {
  s.add("objective", config.kind, kinds, "which gradient q's parameters follow");
  const bool trains_model =
      std::ranges::find(kinds, ObjectiveKind::hoffman, &Choices<ObjectiveKind>::value_type::second) != kinds.end();
  s.add("alpha", config.alpha, Bounds::between(0, 1),
        fmt::format("vcd: 0 is {}, 1 the VCD", trains_model ? "Hoffman's method" : "the KL divergence"));
  s.add("estimator", config.estimator, {{"full", Estimator::full}, {"large-t", Estimator::large_t}},
        "vcd: large-t drops the score at z0, which vanishes for many steps");
  s.add("first_term", config.first_term, {{"reparameterized", FirstTerm::reparameterized}, {"score", FirstTerm::score}},
        "gradient estimator of the ELBO");
  s.add("entropy", config.entropy,
        {{"auto", Entropy::automatic}, {"analytic", Entropy::analytic}, {"sampled", Entropy::sampled}},
        "entropy of q: analytic (Gaussian q; appendix 3), sampled; auto: analytic if q allows it");
  s.add("baseline_decay", config.baseline_decay, Bounds::between(0, 1), "baseline: decay γ of its running average");
}

void add_refinement_settings(Settings& s, const RefinementVariables& v) {
  s.add("kernel", v.kernel.kind, kernel_names(), "the MCMC kernel that refines draws");
  s.add("steps", v.steps, Bounds::between(1, 1e6), "MCMC steps t per refinement");
  s.add("leapfrog", v.kernel.leapfrog, Bounds::between(1, 1e6), "hmc: leapfrog steps L per trajectory");
  s.add("leapfrog_jitter", v.kernel.leapfrog_jitter, Bounds::between(0, 1e6),
        "hmc: draw the number of steps uniformly from L − jitter to L + jitter");
  s.add("adapt", v.adapt, {{"inside", Adapt::inside}, {"between", Adapt::between}, {"off", Adapt::off}},
        "when the step size follows the acceptance: inside a refinement (the authors' way), between refinements, "
        "never");
  s.add("step_size", v.step_size, Bounds::positive(), "step size at the start (hmc: ε; mala, random-walk: δ)",
        "0.5 / dimension of z");
  s.add("acceptance", v.acceptance, Bounds::inside(0, 1), "acceptance that the step size aims at",
        v.acceptance_default);
}

void check_used(const ObjectiveConfig& objective, const KernelConfig& kernel) {
  const ObjectiveConfig o;
  const KernelConfig k;
  const auto refuse = [](bool ignored, const std::string& key, const std::string& who_uses) {
    if (ignored) throw KeyError(key, fmt::format("only {} it; leave it out", who_uses));
  };
  const ObjectiveTerms terms = make_objective(objective)->terms().value();
  const bool vcd = objective.kind == ObjectiveKind::vcd, hmc = kernel.kind == KernelKind::hmc;
  refuse(!vcd && objective.alpha != o.alpha, "alpha", "objective vcd uses");
  refuse(!vcd && objective.estimator != o.estimator, "estimator", "objective vcd uses");
  refuse(!terms.first && objective.first_term != o.first_term, "first_term", "objectives with an ELBO term use");
  refuse(!terms.uses_baseline() && objective.baseline_decay != o.baseline_decay, "baseline_decay",
         "objectives with a score-function term use");
  refuse(!hmc && kernel.leapfrog != k.leapfrog, "leapfrog", "kernel hmc uses");
  refuse(!hmc && kernel.leapfrog_jitter != k.leapfrog_jitter, "leapfrog_jitter", "kernel hmc uses");
}

void add_optimizer_settings(Settings& s, const OptimizerVariables& v) {
  s.add("optimizer", v.kind, {{"rmsprop", OptimizerKind::rmsprop}, {"adam", OptimizerKind::adam}},
        "rmsprop as in the paper, or adam");
  s.add("rate_mean", v.rate_mean, Bounds::at_least(0), "learning rate of q's means");
  s.add("rate_scale", v.rate_scale, Bounds::at_least(0), "learning rate of q's standard deviations");
  s.add("rate_decay", v.rate_decay, Bounds{0, 1, true},
        "factor on all learning rates, applied once per decay_every iterations");
  s.add("decay_every", v.decay_every, Bounds::between(0, 1e9),
        "iterations between applications of rate_decay; 0: never applied");
}

void add_seed_setting(Settings& s, std::uint64_t& seed) {
  s.add("seed", seed, Bounds::between(0, 1e18), "seed of all random numbers");
}

}  // namespace hone
