#include "hone/mcmc/refine.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "hone/base/error.hpp"
#include "hone/base/ranks.hpp"
#include "hone/mcmc/step_size.hpp"

namespace hone {

StepSizeController::StepSizeController(double step_size, double acceptance, double gain)
    : step_size_(step_size), start_(step_size), acceptance_(acceptance), gain_(gain) {
  if (!(gain >= 0 && gain < 1)) throw InputError("the gain of the step size must lie in [0, 1)");
  if (!(step_size > 0) || !std::isfinite(step_size)) throw InputError("the step size must be positive");
  if (!(acceptance > 0 && acceptance < 1)) throw InputError("the acceptance to aim at must lie between 0 and 1");
}

void StepSizeController::update(double acceptance) {
  step_size_ = StepSizeRule(start_, acceptance_, gain_).next(step_size_, acceptance);
}

Refiner::Refiner(const Kernel& kernel, const RefineConfig& config, Team& team)
    : config_(config), controller_(config.step_size, config.aim(kernel), config.gain), team_(team) {
  if (config.steps < 1) throw InputError("a refinement needs at least one step");
  for (int thread = 0; thread < team.threads(); ++thread) kernels_.push_back(kernel.clone());
}

Refinement Refiner::refine(const Target& target, const ChainsView& chains, int group, std::uint32_t iteration,
                           const RandomSource& random) {
  if (group < 1 || chains.count() % group != 0) throw std::logic_error("groups must divide the chains");
  Refinement total;
  if (config_.adapt == Adapt::inside) {
    for (int begin = 0; begin < chains.count(); begin += group)
      refine_group(target, chains.range(begin, begin + group), iteration, random, total);
  } else {
    refine_group(target, chains, iteration, random, total);
  }
  if (total.proposals == 0) return total;
  total.acceptance /= static_cast<double>(total.proposals);
  if (config_.adapt == Adapt::between) controller_.update(total.acceptance);
  return total;
}

void Refiner::refine_group(const Target& target, const ChainsView& chains, std::uint32_t iteration,
                           const RandomSource& random, Refinement& total) {
  const ItemRange own = share_of(chains.count(), ranks_);
  for (int step = 0; step < config_.steps; ++step) {
    const Move move{.random = random,
                    .iteration = iteration,
                    .step = static_cast<std::uint32_t>(step),
                    .step_size = controller_.step_size()};
    team_.for_shares(own.count(), [&](int begin, int end, int thread) {
      if (begin < end) kernels_[thread]->step(target, move, chains.range(own.begin + begin, own.begin + end));
    });
    gather_shares(ranks_, chains.acceptance, chains.count());
    gather_shares(ranks_, chains.outcome, chains.count());
    int accepted = 0, proposals = 0;
    for (int chain = 0; chain < chains.count(); ++chain) {
      total.acceptance += chains.acceptance[chain];
      total.nonfinite += chains.outcome[chain] == Outcome::nonfinite;
      total.divergent += chains.outcome[chain] != Outcome::outside && chains.acceptance[chain] == 0;
      accepted += chains.outcome[chain] == Outcome::accepted;
      proposals += chains.outcome[chain] != Outcome::outside;
    }
    total.proposals += proposals;
    if (config_.adapt == Adapt::inside && step < config_.adapting_steps() && proposals > 0)
      controller_.update(static_cast<double>(accepted) / proposals);
  }
}

double find_step_size(const Target& target, const Kernel& kernel, const Chains& chains, double step_size,
                      double acceptance, const RandomSource& random, Team& team) {
  const double aim = RefineConfig{.acceptance = acceptance}.aim(kernel);
  std::uint32_t trial = 0;
  const auto accepted_at = [&](double size) {
    Refiner refiner(kernel, {.steps = 1, .adapt = Adapt::off, .step_size = size, .acceptance = aim}, team);
    Chains copies = chains;
    return refiner.refine(target, copies.view(), chains.z.cols(), assessment_iteration + trial++, random).acceptance;
  };
  double low = step_size, high = step_size;  // accepted often enough at low, not at high
  const bool grow = accepted_at(step_size) >= aim;
  for (int i = 0; i < 20; ++i) {
    (grow ? high : low) *= grow ? 2 : 0.5;
    const bool often = accepted_at(grow ? high : low) >= aim;
    if (often != grow) break;
    (grow ? low : high) = grow ? high : low;
  }
  for (int i = 0; i < 4; ++i) {
    const double middle = std::sqrt(low * high);
    (accepted_at(middle) >= aim ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace hone
