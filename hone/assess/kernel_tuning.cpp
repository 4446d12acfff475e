#include "hone/assess/kernel_tuning.hpp"

#include <algorithm>
#include <cmath>

#include "hone/mcmc/refine.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {

KernelTuning::KernelTuning(const RefinedConfig& config)
    : config_(&config), kernel_(config.kernel), most_step_size_(config.most_step_size) {
  if (config.step_size) step_size_ = *config.step_size;
}

void KernelTuning::begin(const Target& target, const Chains& chains, Team& team) {
  if (config_->step_size) return;
  const HmcConfig* const hmc = config_->kernel->as_hmc();
  double size = config_->first_step_size;
  if (size <= 0) {
    constexpr int most_pilots = 32;
    const int count = chains.z.cols(), pilots = std::min(count, most_pilots);
    Chains some(chains.z.rows(), pilots);
    for (int i = 0; i < pilots; ++i) {
      const int c = static_cast<int>(static_cast<std::int64_t>(i) * count / pilots);
      copy(chains.z.column(c), some.z.column(i));
      copy(chains.gradient.column(c), some.gradient.column(i));
      some.value[i] = chains.value[c];
    }
    const std::shared_ptr<const Kernel> trial =
        hmc ? std::make_shared<Hmc>(HmcConfig{2, 1, hmc->step_sizes}) : config_->kernel;
    size = find_step_size(target, *trial, some, 0.5, config_->acceptance,
                          PhiloxSource(config_->seed ^ 0x9e3779b97f4a7c15u), team);
  }
  step_size_ = size;
  if (!hmc || config_->first_step_size > 0) return;
  constexpr double quarter_turn = 1.6;  // of a standard normal: as long as it pays
  const int length = std::clamp(static_cast<int>(std::lround(quarter_turn / size)), 2, 32);
  kernel_ = std::make_shared<Hmc>(HmcConfig{length, length - 1, hmc->step_sizes});
}

void KernelTuning::adapt(const ChainChecks& checks, const Round& round) {
  if (config_->step_size) return;
  const double rejected = std::max(1 - checks.acceptance, 0.1 * (1 - config_->acceptance));
  double size = step_size_;
  const double factor = std::clamp(std::sqrt((1 - config_->acceptance) / rejected), 0.5, 1.5);  // it grows with ε²
  if (std::abs(std::log(factor)) > 0.1) size *= factor;
  constexpr int settled_after = 8;  // steps: before that, chains may come from bad starts
  if (round.burn_in >= settled_after &&
      static_cast<double>(checks.divergences) > 0.5 * most_divergent * static_cast<double>(checks.proposals))
    most_step_size_ = 0.6 * step_size_;
  const HmcConfig* const hmc = kernel_->as_hmc();
  if (size > most_step_size_) {
    size = most_step_size_;
    constexpr double half_turn = 3.2;  // of a standard normal
    const double length = std::min(hmc ? hmc->leapfrog * step_size_ : 0, half_turn) / size;
    if (hmc && length > hmc->leapfrog) set_length(static_cast<int>(std::ceil(length)));
  }
  step_size_ = size;
  adapt_length(round);
}

void KernelTuning::set_length(int length) {
  constexpr int longest = 512;
  length = std::clamp(length, 1, longest);
  kernel_ = std::make_shared<Hmc>(HmcConfig{length, length - 1, kernel_->as_hmc()->step_sizes});
}

// Trajectories get twice as long where an effective draw takes many steps, as long as that pays.
void KernelTuning::adapt_length(const Round& round) {
  const HmcConfig* const hmc = kernel_->as_hmc();
  constexpr int least_steps = 8;
  constexpr double many_steps = 5, hidden = 0.5;
  if (!hmc || length_settled_ || round.steps < least_steps || round.draws_per_state > hidden) return;
  const double cost = round.steps_per_draw * hmc->leapfrog;
  if (last_cost_ > 0 && cost > last_cost_) {
    length_settled_ = true;
    set_length(hmc->leapfrog / 2);
  } else if (round.steps_per_draw > many_steps) {
    constexpr double far_too_many = 64;  // where chains move by small steps, an n times longer one saves n² of them
    last_cost_ = cost;
    set_length((round.steps_per_draw > far_too_many ? 4 : 2) * hmc->leapfrog);
  }
}

}  // namespace hone
