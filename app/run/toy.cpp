#include "app/run/toy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/run/method_settings.hpp"
#include "hone/assess/divergence.hpp"
#include "hone/base/error.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"

namespace hone {
namespace {

const Choices<Toy> targets = {{"gaussian", Toy::gaussian}, {"mixture", Toy::mixture}, {"banana", Toy::banana}};
const Choices<FamilyKind> families = {{"gaussian", FamilyKind::gaussian},
                                      {"gaussian-full", FamilyKind::gaussian_full},
                                      {"mixture", FamilyKind::mixture},
                                      {"mixture-full", FamilyKind::mixture_full}};
bool is_mixture(FamilyKind kind) { return kind == FamilyKind::mixture || kind == FamilyKind::mixture_full; }

Covariance covariance_of(FamilyKind kind) {
  const bool full = kind == FamilyKind::gaussian_full || kind == FamilyKind::mixture_full;
  return full ? Covariance::full : Covariance::diagonal;
}

FitConfig fit_config(const ToyConfig& config) {
  FitConfig fit{.objective = make_objective(config.objective),
                .kernel = make_kernel(config.kernel),
                .refine = {.steps = config.steps,
                           .adapt = config.adapt,
                           .step_size = *config.step_size,
                           .acceptance = *config.acceptance},
                .optimizer = config.optimizer,
                .draws_per_iteration = config.draws_per_iteration,
                .threads = config.threads};
  fit.optimizer.weights_from = *config.weights_from;
  return fit;
}

// Averages over one report interval; a row of metrics.csv.
struct Interval {
  Moments elbo, vcd, acceptance;

  void add(const FitStep& step) {
    if (std::isnan(step.elbo)) return;  // no draw was left inside the support
    elbo.add(step.elbo);
    vcd.add(step.vcd);
    acceptance.add(step.acceptance);
  }
};

constexpr auto metrics_header = "iteration,seconds,elbo,elbo_se,vcd,vcd_se,acceptance,step_size";

void train(Fit& fit, const ToyConfig& config, bool refines, CsvFile* metrics, Progress* progress) {
  const std::uint32_t report = std::max(1u, *config.iterations / 100);
  const Stopwatch watch;
  Interval interval;
  for (std::uint32_t i = 1; i <= *config.iterations; ++i) {
    interval.add(fit.step());
    if (i % report != 0 && i != *config.iterations) continue;
    const Estimate elbo = interval.elbo.estimate(), vcd = interval.vcd.estimate();
    if (metrics)
      metrics->row(refines
                       ? fmt::format("{},{:.4f},{:.6g},{:.3g},{:.6g},{:.3g},{:.4f},{:.5g}", i, watch.seconds(),
                                     elbo.mean, elbo.se, vcd.mean, vcd.se, interval.acceptance.mean(), fit.step_size())
                       : fmt::format("{},{:.4f},{:.6g},{:.3g},,,,", i, watch.seconds(), elbo.mean, elbo.se));
    if (progress)
      progress->update(i, refines ? fmt::format("vcd {:.3g}, acceptance {:.2f}", vcd.mean, interval.acceptance.mean())
                                  : fmt::format("elbo {:.3g}", elbo.mean));
    interval = {};
  }
}

// What went wrong with a fit that ended far below its start; empty: nothing. By the VCD the ELBO may end a little
// below.
std::string trouble_of(double elbo_at_start, const Divergence& value) {
  constexpr double far = 100;  // nats
  if (value.elbo.mean >= elbo_at_start - far) return "";
  return fmt::format("the fit diverged: its ELBO ended at {:.3g} and began at {:.3g}; try smaller learning rates",
                     value.elbo.mean, elbo_at_start);
}

// From fresh draws, at a step size of its own: the last one of the fit is a matter of chance, and the VCD depends on
// it.
Divergence final_values(const ToyConfig& config, const FitConfig& settings, const Target& target, const Family& family,
                        DivergenceConfig& values, Progress* progress) {
  constexpr double soon = 2;  // seconds; what takes less needs no progress
  const PhiloxSource random(config.seed);
  const std::int64_t draws = static_cast<std::int64_t>(family.components()) * values.draws;
  if (progress) {
    progress->remark(
        fmt::format("now a step size, and final values from {} draws: {} per component of q", draws, values.draws));
    progress->next("values", "draws", draws);
  }
  values.step_size = config.adapt == Adapt::off
                         ? *config.step_size
                         : tuned_step_size(target, family, *settings.kernel, settings.refine, random);
  const Stopwatch watch;
  if (progress)
    values.watch = [&](double share) {
      if (watch.seconds() > soon) progress->update(std::llround(share * static_cast<double>(draws)), "");
    };
  return estimate_divergence(target, family, values, random);
}

void describe_family(const Family& family, bool mixture, ToyResult& result) {
  result.mean.resize(family.dimension());
  result.sd.resize(family.dimension());
  family.moments(result.mean, result.sd);
  result.parameters.assign(family.parameters().begin(), family.parameters().end());
  if (!mixture) return;
  result.weights.resize(family.components());
  family.log_weights(result.weights);
  for (double& weight : result.weights) weight = std::exp(weight);
  for (int k = 0; k < family.components(); ++k) {
    const Normal normal = family.component(k).value();
    result.component_means.emplace_back(normal.mean.begin(), normal.mean.end());
    auto& sd = result.component_sds.emplace_back();
    for (int i = 0; i < family.dimension(); ++i) sd.push_back(std::sqrt(normal.variance(i)));
  }
}

// Refuses settings that the others make useless, unless they have their default values.
void check_used(const ToyConfig& config) {
  check_used(config.objective, config.kernel);
  const ToyConfig plain;
  const bool mixture = is_mixture(config.family);
  if (!mixture && config.components != plain.components)
    throw KeyError("components", "only a mixture q uses it; leave it out");
  if (!mixture && config.optimizer.rate_weight != plain.optimizer.rate_weight)
    throw KeyError("rate_weight", "only a mixture q uses it; leave it out");
  if (config.adapt == Adapt::off && config.acceptance != make_kernel(config.kernel)->default_acceptance())
    throw KeyError("acceptance", "only a step size that adapts uses it; leave it out");
}

}  // namespace

Settings toy_settings(ToyConfig& config) {
  Settings s;
  ObjectiveConfig& objective = config.objective;
  OptimizerConfig& optimizer = config.optimizer;
  s.add("target", config.target, targets, "the distribution to approximate");
  s.add("family", config.family, families, "the approximation q; -full has a full covariance");
  s.add("components", config.components, Bounds::between(1, 1000), "components of a mixture q");
  add_objective_settings(s, objective, objective_names({ObjectiveKind::kl, ObjectiveKind::vcd, ObjectiveKind::li2017}));
  s.add(
      "baseline", objective.baseline,
      {{"none", BaselineKind::none}, {"global", BaselineKind::global}, {"leave-one-out", BaselineKind::leave_one_out}},
      "control variate of the score-function terms");
  add_refinement_settings(s, {.kernel = config.kernel,
                              .steps = config.steps,
                              .adapt = config.adapt,
                              .step_size = config.step_size,
                              .acceptance = config.acceptance,
                              .acceptance_default = "hmc 0.7, mala 0.54, random-walk 0.4"});
  s.add("iterations", config.iterations, Bounds::between(1, 1e9), "iterations of the fit",
        "20000; 50000 for a mixture q");
  s.add("draws_per_iteration", config.draws_per_iteration, Bounds::between(1, 1e6),
        "draws of q per iteration (per component of a mixture)");
  add_optimizer_settings(s, {.kind = optimizer.kind,
                             .rate_mean = optimizer.rate_location,
                             .rate_scale = optimizer.rate_scale,
                             .rate_decay = optimizer.decay,
                             .decay_every = optimizer.decay_every});
  s.add("rate_weight", optimizer.rate_weight, Bounds::at_least(0), "learning rate of the mixture weights");
  s.add("weights_from", config.weights_from, Bounds::between(0, 1e9),
        "the mixture weights stay fixed up to this iteration", "1000 for kl, else 0");
  s.add("start_sd", config.start_sd, Bounds::at_least(scale_floor), "standard deviations of q at the start");
  s.add("value_draws", config.value_draws, Bounds::between(10000, 1e8),
        "fresh draws (per component) for the final values of ELBO and VCD");
  add_seed_setting(s, config.seed);
  s.add("threads", config.threads, Bounds::between(1, 1024),
        "threads that share the draws of an iteration: useful with many draws");
  return s;
}

void resolve(ToyConfig& config) {
  const int dimension = make_toy(config.target)->dimension();
  if (!config.step_size) config.step_size = 0.5 / dimension;
  const auto objective = make_objective(config.objective);
  if (!config.acceptance) config.acceptance = make_kernel(config.kernel)->default_acceptance();
  if (!config.iterations) config.iterations = is_mixture(config.family) ? 50000 : 20000;
  if (!config.weights_from) config.weights_from = objective->refines() ? 0 : 1000;
  check_used(config);
  if (config.draws_per_iteration < objective->least_draws())
    throw KeyError("baseline", "leave-one-out needs draws_per_iteration of at least 2");
  if (config.objective.entropy == Entropy::analytic && is_mixture(config.family))
    throw KeyError("entropy", "the entropy of a mixture has no analytic form");
  const double draws = is_mixture(config.family) ? config.components : 1;
  for (const auto& [key, number] :
       {std::pair{"value_draws", config.value_draws}, std::pair{"draws_per_iteration", config.draws_per_iteration}})
    if (draws * number > 1e8) throw KeyError(key, "times components must not be above 100000000");
}

std::unique_ptr<Family> starting_family(const ToyConfig& config) {
  const int dimension = make_toy(config.target)->dimension();
  const Covariance covariance = covariance_of(config.family);
  const PhiloxSource random(config.seed);
  if (!is_mixture(config.family)) {
    auto q = std::make_unique<GaussianFamily>(dimension, covariance);
    random.normals({Purpose::start}, q->mean());
    set_isotropic(covariance, config.start_sd, q->scale());
    return q;
  }
  auto q = std::make_unique<MixtureFamily>(dimension, config.components, covariance);
  for (int k = 0; k < config.components; ++k) {
    random.normals({Purpose::start, 0, static_cast<std::uint32_t>(k)}, q->mean(k));
    set_isotropic(covariance, config.start_sd, q->scale(k));
  }
  return q;
}

std::string toy_run_name(const ToyConfig& config) {
  return fmt::format("toy-{}-{}-{}-seed{}", name_of(targets, config.target), name_of(families, config.family),
                     name_of(objective_names(), config.objective.kind), config.seed);
}

ToyResult run_toy(const ToyConfig& given, const RunFolder* folder, Progress* progress) {
  ToyConfig config = given;
  resolve(config);
  std::optional<CsvFile> metrics;
  if (folder) {
    folder->write("config.toml", toy_settings(config).to_toml());
    metrics.emplace(folder->path() / "metrics.csv", metrics_header);
  }
  const auto target = make_toy(config.target);
  const auto family = starting_family(config);
  const PhiloxSource random(config.seed);
  const FitConfig settings = fit_config(config);
  DivergenceConfig values{.kernel = settings.kernel,
                          .steps = config.steps,
                          .step_size = *config.step_size,
                          .draws = 100,
                          .threads = config.threads};
  const double elbo_at_start = estimate_divergence(*target, *family, values, random).elbo.mean;
  Fit fit(*target, *family, settings, random);

  ToyResult result;
  if (progress) progress->start_at(0);
  const Stopwatch watch;
  const bool refines = settings.objective->refines();
  train(fit, config, refines, metrics ? &*metrics : nullptr, progress);
  result.seconds = watch.seconds();
  result.iterations_per_second = *config.iterations / std::max(result.seconds, 1e-9);

  values.draws = config.value_draws;
  const Divergence value = final_values(config, settings, *target, *family, values, progress);
  if (!std::isfinite(value.elbo.mean))
    throw Error("q has left all places where the target is finite; try smaller learning rates");
  result.target = name_of(targets, config.target);
  result.family = name_of(families, config.family);
  result.objective = name_of(objective_names(), config.objective.kind);
  result.kernel = name_of(kernel_names(), config.kernel.kind);
  result.alpha = config.objective.alpha;
  result.seed = config.seed;
  result.iterations = *config.iterations;
  describe_family(*family, is_mixture(config.family), result);
  result.vcd = value.vcd;
  result.elbo = value.elbo;
  result.acceptance = value.acceptance;
  result.step_size = values.step_size;
  result.trouble = trouble_of(elbo_at_start, value);
  result.rejected_nonfinite = fit.rejected_nonfinite() + value.rejected_nonfinite;
  result.dropped_draws = fit.dropped_draws() + value.dropped_draws;
  if (folder) folder->write("summary.json", result.to_json());
  return result;
}

}  // namespace hone
