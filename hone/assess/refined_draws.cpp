#include "hone/assess/refined_draws.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/assess/nested_rhat.hpp"
#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/base/given.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/scalar.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// Every part has its own random streams: iterations from here on.
constexpr std::uint32_t draws_part = assessment_iteration, starts_part = draws_part + (1u << 24),
                        pilot_part = starts_part + (1u << 24), search_part = pilot_part + (1u << 24);

void evaluate(const Target& target, Chains& chains, Team& team) {
  team.for_shares(chains.z.cols(), [&](int begin, int end, int) {
    const auto size = static_cast<std::size_t>(end - begin);
    target.evaluate(chains.z.view().columns(begin, end), Want::both, std::span(chains.value).subspan(begin, size),
                    chains.gradient.view().columns(begin, end));
  });
}

// Chains that move step by step, each step with fresh random numbers.
class Walk {
 public:
  Walk(const Target& target, Refiner& refiner, Chains first, const RandomSource& random, std::uint32_t part)
      : chains(std::move(first)), target_(target), refiner_(refiner), random_(random), part_(part) {}
  Refinement step() {
    return refiner_.refine(target_, chains.view(), chains.z.cols(), part_ + static_cast<std::uint32_t>(taken++),
                           random_);
  }
  Chains chains;
  int taken = 0;

 private:
  const Target& target_;
  Refiner& refiner_;
  const RandomSource& random_;
  std::uint32_t part_;
};

class DrawRefiner {
 public:
  DrawRefiner(const Target& target, const Family& family, const SuperStarts& starts, const RefinedConfig& config,
              const std::function<void(int, double)>& progress);
  RefinedDraws run();

 private:
  Chains first_draws();
  Chains first_super_chains() const;
  double choose_step_size();
  void run_super_chains(int until);
  void run_draws(int until);
  void record_pairs(double acceptance);
  void judge_halves();
  void judge_memory();
  void centre_by_component(std::vector<double>& values) const;
  bool affordable(int until) const;

  const Target& target_;
  const Family& family_;
  const SuperStarts& starts_;
  const RefinedConfig& config_;
  const std::function<void(int, double)>& progress_;
  PhiloxSource random_;
  Team team_;
  RefinedDraws result_;
  Refiner refiner_;
  Walk draws_, supers_;
  std::vector<double> spread_;  // Var_q per coordinate
  Chains half_{1, 1};           // the draws after half of the steps
  std::vector<int> moved_;      // accepted proposals per chain
};

int whole(int value, int least, const char* what) {
  if (value < least) throw InputError(std::string(what) + " must be at least " + std::to_string(least));
  return value;
}

void check(const SuperStarts& starts, int dimension) {
  if (starts.mode.empty()) throw InputError("nested R-hat needs starts, and there are none");
  if (starts.z.rows() != dimension)
    throw InputError(detail::format("the starts have dimension {} and the family {}", starts.z.rows(), dimension));
  if (static_cast<std::size_t>(starts.z.cols()) != starts.mode.size())
    throw InputError(detail::format("there are {} starts, but modes for {}", starts.z.cols(), starts.mode.size()));
  for (const int mode : starts.mode) {
    if (mode < 0) throw InputError("the modes of the starts count from 0");
    if (std::ranges::count(starts.mode, mode) < 2)
      throw InputError("nested R-hat needs at least two starts in every mode");
  }
}

DrawRefiner::DrawRefiner(const Target& target, const Family& family, const SuperStarts& starts,
                         const RefinedConfig& config, const std::function<void(int, double)>& progress)
    : target_(target),
      family_(family),
      starts_(starts),
      config_(config),
      progress_(progress),
      random_(config.seed),
      team_(whole(config.threads, 1, "the number of threads")),
      refiner_(*config.kernel,
               {.steps = 1, .adapt = Adapt::off, .step_size = choose_step_size(), .acceptance = config.acceptance},
               team_),
      draws_(target, refiner_, first_draws(), random_, draws_part),
      supers_(target, refiner_, first_super_chains(), random_, starts_part) {
  std::vector<double> mean(family.dimension()), sd(family.dimension());
  family.moments(mean, sd);
  for (const double x : sd) spread_.push_back(square(x));
  moved_.resize(draws_.chains.z.cols());
}

// Finds the step size with pilot chains that are refined a little first, so that it suits the places where chains will
// be.
double DrawRefiner::choose_step_size() {
  if (config_.step_size) return result_.step_size = *config_.step_size;
  constexpr int pilots = 128, pilot_steps = 8;
  const PhiloxSource pilot_random(config_.seed ^ 0x9e3779b97f4a7c15u);
  Chains chains(family_.dimension(), pilots);
  chains.z = independent_draws(family_, pilots, pilot_random);
  evaluate(target_, chains, team_);
  double size = find_step_size(target_, *config_.kernel, chains, 0.5, config_.acceptance, pilot_random, team_);
  Refiner refiner(*config_.kernel,
                  {.steps = pilot_steps, .adapt = Adapt::between, .step_size = size, .acceptance = config_.acceptance},
                  team_);
  refiner.refine(target_, chains.view(), pilots, pilot_part, pilot_random);
  return result_.step_size =
             find_step_size(target_, *config_.kernel, chains, size, config_.acceptance, pilot_random, team_);
}

Chains DrawRefiner::first_draws() {
  const int n = whole(config_.draws, 100, "the number of draws");
  Chains all(family_.dimension(), n);
  std::vector<int> component;
  all.z = independent_draws(family_, n, random_, &component);
  evaluate(target_, all, team_);
  result_.dropped_draws = std::ranges::count(all.value, -infinity);
  const int kept = n - static_cast<int>(result_.dropped_draws);
  if (kept < 100)
    throw Error("only " + std::to_string(kept) + " of " + std::to_string(n) +
                " draws of q lie where the posterior is finite; q cannot be refined");
  Chains chains(family_.dimension(), kept);
  for (int i = 0, to = 0; i < n; ++i) {
    if (all.value[i] == -infinity) continue;
    copy(all.z.column(i), chains.z.column(to));
    copy(all.gradient.column(i), chains.gradient.column(to));
    result_.component.push_back(component[i]);
    chains.value[to++] = all.value[i];
  }
  result_.z0 = chains.z;
  result_.log_p0 = chains.value;
  result_.log_q0.resize(kept);
  result_.log_qt.resize(kept);
  family_.log_density(chains.z, Want::value, result_.log_q0, {});
  return chains;
}

Chains DrawRefiner::first_super_chains() const {
  const MatrixView<const double> starts = starts_.z;
  const int size = whole(config_.chains_per_start, 2, "the number of chains per start");
  Chains chains(family_.dimension(), starts.cols() * size);
  for (int c = 0; c < chains.z.cols(); ++c) copy(starts.column(c / size), chains.z.column(c));
  target_.evaluate(chains.z, Want::both, chains.value, chains.gradient);
  return chains;
}

// Continues to `until` steps; the moments are those of the second half.
void DrawRefiner::run_super_chains(int until) {
  const int d = family_.dimension(), count = supers_.chains.z.cols();
  std::vector<std::vector<Moments>> moments(d + 1, std::vector<Moments>(count));
  while (supers_.taken < until) {
    supers_.step();
    if (2 * supers_.taken <= until) continue;
    for (int c = 0; c < count; ++c) {
      for (int i = 0; i < d; ++i) moments[i][c].add(supers_.chains.z(i, c));
      moments[d][c].add(supers_.chains.value[c]);
    }
  }
  ChainChecks& checks = result_.checks;
  checks.super_chains = count / config_.chains_per_start;
  checks.nested_rhat = 0;
  const int modes = 1 + *std::ranges::max_element(starts_.mode);
  for (int mode = 0; mode < modes; ++mode)
    for (int i = 0; i <= d; ++i) {
      std::vector<Moments> chains;
      for (int c = 0; c < count; ++c)
        if (starts_.mode[c / config_.chains_per_start] == mode) chains.push_back(moments[i][c]);
      const double rhat = chains.empty() ? 1 : nested_rhat(chains, config_.chains_per_start);
      if (!(rhat > checks.nested_rhat)) continue;
      checks.nested_rhat = rhat;
      checks.rhat_coordinate = i < d ? i : -1;
    }
  if (progress_) progress_(until, checks.nested_rhat);
}

void DrawRefiner::run_draws(int until) {
  ChainChecks& checks = result_.checks;
  checks.acceptance = 0;
  checks.proposals = checks.divergences = 0;
  int halves = 0, since = 0;
  double accepted = 0;  // since the pairs were recorded
  while (draws_.taken < until) {
    if (2 * draws_.taken == until) half_ = draws_.chains;
    const Refinement step = draws_.step();
    accepted += step.acceptance;
    ++since;
    if (2 * draws_.taken > until) {
      ++halves;
      checks.acceptance += step.acceptance;
      checks.proposals += step.proposals;
      checks.divergences += step.divergent;
    }
    for (std::size_t c = 0; c < moved_.size(); ++c) moved_[c] += draws_.chains.outcome[c] == Outcome::accepted;
    if ((draws_.taken & (draws_.taken - 1)) != 0 && draws_.taken != until) continue;
    record_pairs(accepted / since);
    accepted = since = 0;
  }
  checks.acceptance /= halves;
  checks.stuck = static_cast<double>(std::ranges::count(moved_, 0)) / static_cast<double>(moved_.size());
}

void DrawRefiner::record_pairs(double acceptance) {
  const Chains& chains = draws_.chains;
  const int n = result_.z0.cols(), d = family_.dimension();
  family_.log_density(chains.z, Want::value, result_.log_qt, {});
  Moments vcd;
  double jump = 0, spread = 0;
  for (const double x : spread_) spread += x;
  for (int i = 0; i < n; ++i) {
    vcd.add(chains.value[i] - result_.log_qt[i] - (result_.log_p0[i] - result_.log_q0[i]));
    for (int k = 0; k < d; ++k) jump += square(chains.z(k, i) - result_.z0(k, i));
  }
  result_.at.push_back({.steps = draws_.taken,
                        .vcd = vcd.estimate(),
                        .acceptance = acceptance,
                        .jump = jump / (2 * spread * n),
                        .correlation = correlation(result_.log_p0, chains.value)});
}

// Paired moments at t/2 and t: coordinates, their squares about the mean, and log p.
void DrawRefiner::judge_halves() {
  const Chains& now = draws_.chains;
  const int n = now.z.cols(), d = family_.dimension();
  ChainChecks& checks = result_.checks;
  checks.drift = 0;
  const auto look = [&checks, n](auto&& difference) {
    Moments moments;
    for (int i = 0; i < n; ++i) moments.add(difference(i));
    const Estimate e = moments.estimate();
    if (e.se > 0) checks.drift = std::max(checks.drift, std::abs(e.mean) / e.se);
  };
  for (int k = 0; k < d; ++k) {
    Moments centre;
    for (int i = 0; i < n; ++i) centre.add(now.z(k, i));
    look([&](int i) { return now.z(k, i) - half_.z(k, i); });
    look([&](int i) { return square(now.z(k, i) - centre.mean()) - square(half_.z(k, i) - centre.mean()); });
  }
  look([&](int i) { return now.value[i] - half_.value[i]; });
  checks.drift_limit = std::sqrt(2 * std::log(1000.0 * (2 * d + 1)));  // exceeded by chance less than once in 1000 runs
  Moments energy;
  for (const double value : now.value) energy.add(value);
  checks.bfmi = d / (0.5 * d + energy.variance());
}

// Correlations about the means of the draws' components, since chains need not leave their mode.
void DrawRefiner::judge_memory() {
  const Chains& now = draws_.chains;
  const int n = now.z.cols(), d = family_.dimension();
  ChainChecks& checks = result_.checks;
  checks.memory = 0;
  std::vector<double> before(n), after(n);
  for (int k = -1; k < d; ++k) {
    for (int i = 0; i < n; ++i) {
      before[i] = k < 0 ? result_.log_p0[i] : result_.z0(k, i);
      after[i] = k < 0 ? now.value[i] : now.z(k, i);
    }
    centre_by_component(before);
    centre_by_component(after);
    const double r = std::abs(correlation(before, after));
    if (std::isnan(r)) {  // a constant quantity does not show that chains move
      checks.memory = 1;
      checks.memory_coordinate = k;
      return;
    }
    if (!(r > checks.memory)) continue;
    checks.memory = r;
    checks.memory_coordinate = k;
  }
}

void DrawRefiner::centre_by_component(std::vector<double>& values) const {
  if (family_.components() == 1) return;
  std::vector<Moments> moments(family_.components());
  for (std::size_t i = 0; i < values.size(); ++i) moments[result_.component[i]].add(values[i]);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= moments[result_.component[i]].mean();
}

bool DrawRefiner::affordable(int until) const {
  if (until > config_.most_steps || (config_.stop && *config_.stop)) return false;
  const double chains = draws_.chains.z.cols() + supers_.chains.z.cols();
  const double each = config_.kernel->evaluations_per_step();
  return config_.gradients == 0 || chains * each * until <= static_cast<double>(config_.gradients);
}

RefinedDraws DrawRefiner::run() {
  int until = whole(config_.steps, 1, "the steps of a refinement");
  until += until % 2;
  run_super_chains(until);
  // The super-chains are fewer, so they decide first how many steps the draws need.
  while (result_.checks.nested_rhat >= most_rhat && affordable(2 * until)) run_super_chains(until *= 2);
  for (;;) {
    run_draws(until);
    judge_halves();
    judge_memory();
    if (arrived(result_.checks)) break;
    if (!affordable(2 * until)) {
      result_.capped = true;
      break;
    }
    until *= 2;
    run_super_chains(until);
  }
  result_.steps = draws_.taken;
  result_.zt = draws_.chains.z;
  result_.log_pt = draws_.chains.value;
  return std::move(result_);
}

}  // namespace

bool arrived(const ChainChecks& checks) {
  return checks.nested_rhat < most_rhat && checks.drift <= checks.drift_limit && checks.memory <= most_memory &&
         checks.stuck <= most_stuck;
}

Matrix<double> independent_draws(const Family& family, int count, const RandomSource& random,
                                 std::vector<int>* component) {
  Draws draws(family.dimension(), family.components(), count);
  family.draw(random, draws_part, draws);
  if (component) component->assign(count, 0);
  if (family.components() == 1) return std::move(draws.z);
  std::vector<double> uniform(count);
  random.uniforms({Purpose::proposal, draws_part}, uniform);
  Matrix<double> result(family.dimension(), count);
  for (int i = 0; i < count; ++i) {
    int k = 0;
    for (double left = uniform[i]; k + 1 < family.components(); ++k) {
      left -= draws.weight[k * count] * count;
      if (left < 0) break;
    }
    copy(draws.z.column(k * count + i), result.column(i));
    if (component) (*component)[i] = k;
  }
  return result;
}

RefinedDraws refine_draws(const Target& target, const Family& family, const SuperStarts& starts,
                          const RefinedConfig& config, const std::function<void(int, double)>& progress) {
  given(config.kernel, "kernel");
  check(starts, family.dimension());
  return DrawRefiner(target, family, starts, config, progress).run();
}

}  // namespace hone
