#include "hone/objective/vcd.hpp"

#include "hone/base/error.hpp"

namespace hone {

VcdObjective::VcdObjective(const ObjectiveConfig& config, const Family& family, const BaselineFactory& baselines)
    : alpha_(config.alpha),
      first_(config.first_term, analytic_entropy(config.entropy, family),
             config.first_term == FirstTerm::score ? baselines(Term::first) : nullptr),
      second_(config.estimator, analytic_entropy(config.entropy, family),
              config.estimator == Estimator::full ? baselines(Term::second) : nullptr) {
  if (!(alpha_ >= 0 && alpha_ <= 1)) throw InputError("alpha must lie in [0, 1]");
}

void VcdObjective::add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) {
  first_.add(family, evidence, gradient);
  second_.add(family, evidence, alpha_, gradient);
}

}  // namespace hone
