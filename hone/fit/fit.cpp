#include "hone/fit/fit.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "hone/base/error.hpp"
#include "hone/base/given.hpp"

namespace hone {
namespace {

int at_least_one(int value, const char* what) {
  if (value < 1) throw InputError(std::string(what) + " must be at least 1");
  return value;
}

}  // namespace

Fit::Fit(const Target& target, Family& family, const FitConfig& config, const RandomSource& random,
         std::unique_ptr<Optimizer> optimizer)
    : target_(target),
      family_(family),
      random_(random),
      team_(at_least_one(config.threads, "the number of threads")),
      refiner_(given(config.kernel, "kernel"), config.refine, team_),
      objective_(given(config.objective, "objective").clone()),
      analytic_(objective_->analytic(family)),
      optimizer_(optimizer ? std::move(optimizer) : make_optimizer(config.optimizer, family)),
      evidence_(family.dimension(), family.components(),
                at_least_one(config.draws_per_iteration, "the number of draws per iteration")),
      ascent_(family.parameters().size()),
      least_acceptance_(config.least_acceptance),
      most_dropped_(config.most_dropped) {
  if (target.dimension() != family.dimension())
    throw InputError("the target has dimension " + std::to_string(target.dimension()) + " and the family " +
                     std::to_string(family.dimension()));
  if (config.draws_per_iteration < objective_->least_draws())
    throw InputError("the objective needs at least " + std::to_string(objective_->least_draws()) +
                     " draws per iteration");
}

const FitStep& Fit::step() {
  const std::uint32_t iteration = last_.iteration + 1;
  const std::int64_t dropped_before = dropped_draws_;
  last_ = {.iteration = iteration};
  evidence_.iteration = iteration;
  sample(iteration);
  if (objective_->refines()) refine(iteration);
  last_.elbo = elbo_estimate(family_, evidence_, analytic_);
  if (objective_->refines()) last_.vcd = vcd_estimate(family_, evidence_, analytic_);

  const auto dropped = static_cast<double>(dropped_draws_ - dropped_before);
  if ((objective_->refines() && last_.acceptance < least_acceptance_) ||
      dropped > most_dropped_ * evidence_.draws.count()) {
    ++skipped_steps_;
    return last_;
  }
  std::ranges::fill(ascent_, 0.0);
  objective_->add_ascent(family_, evidence_, ascent_);
  optimizer_->step(family_, ascent_, iteration - static_cast<std::uint32_t>(skipped_steps_));
  check_finite();
  return last_;
}

void Fit::sample(std::uint32_t iteration) {
  Draws& draws = evidence_.draws;
  family_.draw(random_, iteration, draws);
  team_.for_shares(draws.count(), [&](int begin, int end, int) {
    const auto z = draws.z.view().columns(begin, end);
    const auto size = static_cast<std::size_t>(end - begin);
    target_.evaluate(z, Want::both, std::span(evidence_.log_p0).subspan(begin, size),
                     evidence_.grad_p0.view().columns(begin, end));
  });
  dropped_draws_ += drop_outside_support(evidence_);
  if (analytic_)  // no term has ∇_z log q then
    family_.log_density_at(draws, Want::value, evidence_.log_q0, {});
  else
    family_.log_density_at(draws, Want::both, evidence_.log_q0, evidence_.grad_q0);
}

void Fit::refine(std::uint32_t iteration) {
  Chains& chains = evidence_.refined;
  begin_refinement(evidence_);
  const Refinement result = refiner_.refine(target_, chains.view(), evidence_.draws.per_component, iteration, random_);
  end_refinement(evidence_);
  last_.acceptance = result.acceptance;
  rejected_nonfinite_ += result.nonfinite;
  family_.log_density(chains.z, Want::value, evidence_.log_qt, {});
}

void Fit::check_finite() const {
  for (const Slice& slice : family_.slices())
    for (const double value : family_.parameters().subspan(slice.offset, slice.size))
      if (!std::isfinite(value))
        throw Error("the parameter '" + slice.name + "' of q is not finite after iteration " +
                    std::to_string(last_.iteration) + "; try smaller learning rates");
}

}  // namespace hone
