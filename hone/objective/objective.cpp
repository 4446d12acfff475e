#include "hone/objective/objective.hpp"

#include "hone/base/error.hpp"
#include "hone/objective/kl.hpp"
#include "hone/objective/li2017.hpp"
#include "hone/objective/vcd.hpp"

namespace hone {

std::unique_ptr<Objective> make_objective(const ObjectiveConfig& config, const Family& family,
                                          const BaselineFactory& baselines) {
  const BaselineFactory make =
      baselines ? baselines : [&](Term) { return make_baseline(config.baseline, config.baseline_decay); };
  switch (config.kind) {
    case ObjectiveKind::kl:
      return std::make_unique<KlObjective>(config, family, make);
    case ObjectiveKind::hoffman:
      return std::make_unique<HoffmanObjective>(config, family, make);
    case ObjectiveKind::vcd:
      return std::make_unique<VcdObjective>(config, family, make);
    case ObjectiveKind::li2017:
      return std::make_unique<Li2017Objective>();
  }
  throw Error("unknown objective");
}

bool uses_baseline(const ObjectiveConfig& config) {
  if (config.kind == ObjectiveKind::li2017) return false;
  return config.first_term == FirstTerm::score ||
         (config.kind == ObjectiveKind::vcd && config.estimator == Estimator::full);
}

double elbo_estimate(const Family& family, const Evidence& evidence, bool analytic) {
  double sum = 0, weight = 0;
  for (int i = 0; i < evidence.draws.count(); ++i) {
    const double f =
        analytic ? evidence.log_p0[i] + 0.5 * family.dimension() + family.log_normalizer(i) : evidence.f0(i);
    sum += evidence.draws.weight[i] * f;
    weight += evidence.draws.weight[i];
  }
  return sum / weight;
}

double vcd_estimate(const Family& family, const Evidence& evidence, bool analytic) {
  double refined = 0, weight = 0;
  for (int i = 0; i < evidence.draws.count(); ++i) {
    refined += evidence.draws.weight[i] * evidence.ft(i);
    weight += evidence.draws.weight[i];
  }
  return refined / weight - elbo_estimate(family, evidence, analytic);  // eq. new_divergence_rearranged
}

}  // namespace hone
