#include "hone/assess/kernel_tuning.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/scalar.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/target/batches.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// At most 32 of the chains, evenly over all of them.
Chains some_of(const Chains& chains) {
  constexpr int most = 32;
  const int count = chains.z.cols(), pilots = std::min(count, most);
  Chains some(chains.z.rows(), pilots);
  for (int i = 0; i < pilots; ++i) {
    const int c = static_cast<int>(static_cast<std::int64_t>(i) * count / pilots);
    copy(chains.z.column(c), some.z.column(i));
    copy(chains.gradient.column(c), some.gradient.column(i));
    some.value[i] = chains.value[c];
  }
  return some;
}

}  // namespace

int paying_length(const Target& target, Chains pilots, const Pilots& how, const RandomSource& random, Team& team) {
  const int d = pilots.z.rows(), n = pilots.z.cols();
  const Matrix<double> start = pilots.z;
  Matrix<double> momentum(d, n);
  for (int c = 0; c < n; ++c)
    random.normals({Purpose::momentum, assessment_iteration, static_cast<std::uint32_t>(c)}, momentum.column(c));
  // Per pilot: the sum over steps of its squared distance from the start, the largest value so far of this sum divided
  // by l², and the l of that value.
  std::vector<double> moved(n), most(n);
  std::vector<int> best(n, 2);
  int typical = 2;  // their median, so that a pilot that runs away does not decide
  for (int l = 1; l <= how.steps && l <= 2 * typical + 8; ++l) {
    add_scaled(0.5 * how.step_size, pilots.gradient.view().flat(), momentum.view().flat());
    add_scaled(how.step_size, momentum.view().flat(), pilots.z.view().flat());
    evaluate_in_batches(target, pilots.z, Want::gradient, {}, pilots.gradient, team);
    add_scaled(0.5 * how.step_size, pilots.gradient.view().flat(), momentum.view().flat());
    for (int c = 0; c < n; ++c) {
      for (int k = 0; k < d; ++k) moved[c] += square(pilots.z(k, c) - start(k, c));
      if (!std::isfinite(moved[c]) || !(moved[c] > most[c] * l * l)) continue;
      most[c] = moved[c] / (static_cast<double>(l) * l);
      best[c] = l;
    }
    std::vector<int> sorted = best;
    std::ranges::nth_element(sorted, sorted.begin() + n / 2);
    typical = sorted[n / 2];
  }
  return (typical + 1) / 2;
}

KernelTuning::KernelTuning(const RefinedConfig& config)
    : config_(&config), kernel_(config.kernel), most_step_size_(config.most_step_size) {
  if (config.step_size) step_size_ = *config.step_size;
}

void KernelTuning::begin(const Target& target, const Chains& chains, Team& team) {
  if (config_->step_size) return;
  step_size_ = config_->first_step_size;
  if (!(step_size_ > 0)) search(target, chains, team);
}

void KernelTuning::begin_anew(const Target& target, const Chains& chains, Team& team) {
  if (config_->step_size) return;
  kernel_ = config_->kernel;
  most_step_size_ = 1e300;
  last_cost_ = 0;
  length_settled_ = false;
  search(target, chains, team);
}

void KernelTuning::search(const Target& target, const Chains& chains, Team& team) {
  const HmcConfig* const hmc = config_->kernel->as_hmc();
  const PhiloxSource random(config_->seed ^ 0x9e3779b97f4a7c15u);
  const Chains some = some_of(chains);
  const std::shared_ptr<const Kernel> trial =
      hmc ? std::make_shared<Hmc>(HmcConfig{2, 1, hmc->step_sizes}) : config_->kernel;
  step_size_ = find_step_size(target, *trial, some, 0.5, config_->acceptance, random, team);
  if (!hmc) return;
  const double trajectories = static_cast<double>(chains.z.cols()) * std::max(1, config_->steps);  // of the first round
  const double paid = config_->gradients > 0 ? static_cast<double>(config_->gradients) / trajectories : 1e9;
  const int longest = static_cast<int>(std::clamp(paid, 2.0, 1e9));  // that the budget allows all of them
  constexpr double quarter_turn = 1.6;                               // of a standard normal: as long as it pays
  const int length = std::clamp(static_cast<int>(std::lround(quarter_turn / step_size_)), 2, std::min(32, longest));
  kernel_ = std::make_shared<Hmc>(HmcConfig{length, length - 1, hmc->step_sizes});
  if (config_->pilot_steps > 0)
    begin_long(target, some, {step_size_, std::min(config_->pilot_steps, longest)}, random, team);
}

// Shrinks a step size that suits short trajectories but is too large for long ones.
void KernelTuning::begin_long(const Target& target, const Chains& pilots, const Pilots& how, const RandomSource& random,
                              Team& team) {
  const int longest = how.steps;
  constexpr int halvings = 4;
  constexpr double far_too_few = 0.2;  // below the acceptance that is aimed at
  const int found = paying_length(target, pilots, how, random, team);
  const double time = std::max({step_size_ * found, step_size_ * kernel_->as_hmc()->leapfrog, config_->first_time});
  for (int k = 0;; ++k, step_size_ *= 0.5) {
    set_length(static_cast<int>(std::min<long>(longest, std::lround(time / step_size_))));
    if (k == halvings) return;
    Refiner refiner(
        *kernel_, {.steps = 1, .adapt = Adapt::off, .step_size = step_size_, .acceptance = config_->acceptance}, team);
    Chains copies = pilots;
    const std::uint32_t iteration = assessment_iteration + (1u << 16) + static_cast<std::uint32_t>(k);
    const double accepted = refiner.refine(target, copies.view(), copies.z.cols(), iteration, random).acceptance;
    if (accepted >= config_->acceptance - far_too_few) return;
  }
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
  // Draws per chain. Chains that hardly move seem to give as many: their cost is not known.
  constexpr double one_or_two = 2;
  if (config_->pilot_steps > 0 && round.draws_per_chain < one_or_two) {
    last_cost_ = 0;
    set_length(std::max(hmc->leapfrog, std::min(2 * hmc->leapfrog, config_->pilot_steps)));
    return;
  }
  const double cost = round.steps_per_draw * hmc->leapfrog;
  if (last_cost_ > 0 && cost > last_cost_) {
    length_settled_ = true;
    set_length(hmc->leapfrog / 2);
  } else if (round.steps_per_draw > many_steps) {
    constexpr double far_too_many = 64;  // chains that diffuse: trajectories n times as long save n² steps
    last_cost_ = cost;
    set_length((round.steps_per_draw > far_too_many ? 4 : 2) * hmc->leapfrog);
  }
}

}  // namespace hone
