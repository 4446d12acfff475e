#include "hone/objective/kl.hpp"

#include "hone/objective/terms.hpp"

namespace hone {

KlAscent::KlAscent(const KlConfig& config)
    : config_(config), first_(std::make_unique<FirstTermGradient>(config.first_term, config.entropy)) {
  KlAscent::use_baselines([&config](Term) { return make_baseline(config.baseline, config.baseline_decay); });
  if (config.first_term == FirstTerm::score) least_draws_ = least_draws_of(config.baseline);
}

KlAscent::~KlAscent() = default;

void KlAscent::add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) {
  first_->add(family, evidence, gradient);
}

void KlAscent::use_baselines(const BaselineFactory& make) {
  if (config_.first_term == FirstTerm::score) first_->use(make(Term::first));
  least_draws_ = 1;
}

std::optional<ObjectiveTerms> KlAscent::terms() const {
  return ObjectiveTerms{.refines = refines(), .first_term = config_.first_term, .entropy = config_.entropy};
}

}  // namespace hone
