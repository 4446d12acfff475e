#include "hone/objective/kl.hpp"

namespace hone {

KlObjective::KlObjective(const ObjectiveConfig& config, const Family& family)
    : first_(config.first_term, analytic_entropy(config.entropy, family),
             make_baseline(config.baseline, config.baseline_decay)) {}

}  // namespace hone
