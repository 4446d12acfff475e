#include "hone/objective/kl.hpp"

namespace hone {

KlObjective::KlObjective(const ObjectiveConfig& config, const Family& family, const BaselineFactory& baselines)
    : first_(config.first_term, analytic_entropy(config.entropy, family),
             config.first_term == FirstTerm::score ? baselines(Term::first) : nullptr) {}

}  // namespace hone
