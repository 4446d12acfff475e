#include "hone/objective/vcd.hpp"

#include "hone/base/error.hpp"
#include "hone/objective/terms.hpp"

namespace hone {

Vcd::Vcd(const VcdConfig& config)
    : config_(config),
      first_(std::make_unique<FirstTermGradient>(config.first_term, config.entropy)),
      second_(std::make_unique<SecondTermGradient>(config.estimator, config.entropy, config.score_bound)) {
  if (!(config.alpha >= 0 && config.alpha <= 1)) throw InputError("alpha must lie in [0, 1]");
  if (!(config.score_bound >= 0)) throw InputError("score_bound must not be negative");
  use_baselines([&config](Term) { return make_baseline(config.baseline, config.baseline_decay); });
  if (terms()->uses_baseline()) least_draws_ = least_draws_of(config.baseline);
}

Vcd::~Vcd() = default;

double Vcd::baseline() const { return second_->baseline(); }

void Vcd::add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) {
  first_->add(family, evidence, gradient);
  second_->add(family, evidence, config_.alpha * config_.ramp.at(evidence.iteration), gradient);
}

void Vcd::use_baselines(const BaselineFactory& make) {
  if (config_.first_term == FirstTerm::score) first_->use(make(Term::first));
  if (config_.estimator == Estimator::full) second_->use(make(Term::second));
  least_draws_ = 1;
}

std::optional<ObjectiveTerms> Vcd::terms() const {
  return ObjectiveTerms{.refines = true,
                        .first_term = config_.first_term,
                        .entropy = config_.entropy,
                        .start_score = config_.estimator == Estimator::full,
                        .refined_score = true,
                        .alpha = config_.alpha,
                        .ramp = config_.ramp,
                        .score_bound = config_.score_bound};
}

}  // namespace hone
