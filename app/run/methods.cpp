#include "app/run/methods.hpp"

#include <fmt/format.h>

#include <limits>

#include "hone/base/error.hpp"
#include "hone/mcmc/mala.hpp"
#include "hone/mcmc/random_walk.hpp"
#include "hone/objective/kl.hpp"
#include "hone/objective/li2017.hpp"
#include "hone/objective/vcd.hpp"

namespace hone {

const Choices<ObjectiveKind>& objective_names() {
  static const Choices<ObjectiveKind> names = {{"kl", ObjectiveKind::kl},
                                               {"hoffman", ObjectiveKind::hoffman},
                                               {"vcd", ObjectiveKind::vcd},
                                               {"li2017", ObjectiveKind::li2017}};
  return names;
}

Choices<ObjectiveKind> objective_names(std::initializer_list<ObjectiveKind> kinds) {
  Choices<ObjectiveKind> names;
  for (const ObjectiveKind kind : kinds) names.emplace_back(name_of(objective_names(), kind), kind);
  return names;
}

std::string name_of(ObjectiveKind kind) { return name_of(objective_names(), kind); }

bool refines(const std::string& objective) {
  const auto found = std::ranges::find(objective_names(), objective, &std::pair<std::string, ObjectiveKind>::first);
  return found == objective_names().end() || make_objective({.kind = found->second})->refines();
}

const Choices<KernelKind>& kernel_names() {
  static const Choices<KernelKind> names = {
      {"hmc", KernelKind::hmc}, {"mala", KernelKind::mala}, {"random-walk", KernelKind::random_walk}};
  return names;
}

const Choices<AmortizedKind>& amortized_names() {
  static const Choices<AmortizedKind> names = {{"diagonal", AmortizedKind::diagonal},
                                               {"low-rank", AmortizedKind::low_rank}};
  return names;
}

const Choices<Activation>& activation_names() {
  static const Choices<Activation> names = {
      {"relu", Activation::relu}, {"tanh", Activation::tanh}, {"softplus", Activation::softplus}};
  return names;
}

namespace {

double bound_of(double score_bound) {
  return score_bound == no_bound ? std::numeric_limits<double>::infinity() : score_bound;
}

}  // namespace

std::shared_ptr<const Objective> make_objective(const ObjectiveConfig& config) {
  const KlConfig kl{.first_term = config.first_term,
                    .entropy = config.entropy,
                    .baseline = config.baseline,
                    .baseline_decay = config.baseline_decay};
  switch (config.kind) {
    case ObjectiveKind::kl:
      return std::make_shared<Kl>(kl);
    case ObjectiveKind::hoffman:
      return std::make_shared<Hoffman>(kl);
    case ObjectiveKind::vcd:
      return std::make_shared<Vcd>(VcdConfig{.alpha = config.alpha,
                                             .ramp = config.ramp,
                                             .score_bound = bound_of(config.score_bound),
                                             .estimator = config.estimator,
                                             .first_term = config.first_term,
                                             .entropy = config.entropy,
                                             .baseline = config.baseline,
                                             .baseline_decay = config.baseline_decay});
    case ObjectiveKind::li2017:
      return std::make_shared<Li2017>(config.entropy);
  }
  throw Error("unknown objective");
}

std::shared_ptr<const Kernel> make_kernel(const KernelConfig& config) {
  switch (config.kind) {
    case KernelKind::hmc:
      if (config.leapfrog_jitter >= config.leapfrog)
        throw KeyError("leapfrog_jitter", fmt::format("must be below leapfrog, which is {}", config.leapfrog));
      return std::make_shared<Hmc>(HmcConfig{config.leapfrog, config.leapfrog_jitter});
    case KernelKind::mala:
      return std::make_shared<Mala>();
    case KernelKind::random_walk:
      return std::make_shared<RandomWalk>();
  }
  throw Error("unknown kernel");
}

std::shared_ptr<const AmortizedFamily> make_family(const AmortizedConfig& config) {
  if (config.kind == AmortizedKind::low_rank) return std::make_shared<LowRankGaussian>(config.rank.value_or(2));
  if (config.rank) throw KeyError("rank", "only family low-rank uses it; leave it out");
  return std::make_shared<DiagonalGaussian>();
}

std::string in_words(const AmortizedConfig& config) {
  return name_of(amortized_names(), config.kind) + (config.rank ? fmt::format(", rank {}", *config.rank) : "");
}

std::string model_in_words(const std::string& model, const std::string& likelihood) {
  const bool said = likelihood.empty() || likelihood == "auto" || likelihood == "bernoulli" || model.ends_with("-mf");
  return said ? model : fmt::format("{} ({})", model, likelihood);
}

}  // namespace hone
