#include "hone/assess/refined_draws.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/assess/chain_checks.hpp"
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
constexpr std::uint32_t draws_part = assessment_iteration, walk_part = draws_part + (1u << 24);

void evaluate(const Target& target, Chains& chains, Team& team) {
  team.for_shares(chains.z.cols(), [&](int begin, int end, int) {
    const auto size = static_cast<std::size_t>(end - begin);
    target.evaluate(chains.z.view().columns(begin, end), Want::both, std::span(chains.value).subspan(begin, size),
                    chains.gradient.view().columns(begin, end));
  });
}

class DrawRefiner {
 public:
  DrawRefiner(const Target& target, const Family& family, const SuperStarts& starts, const RefinedConfig& config,
              const std::function<void(int, double)>& progress);
  RefinedDraws run();

 private:
  void draw_from_q();
  void place_chains();
  void find_first_step();
  void run_round(int until);
  void extend(int until);
  void walk(int until, ChainStates* block);
  ChainStates room_for(int steps, int& stride) const;
  void record(ChainStates& block, int state) const;
  void record_pairs(double acceptance);
  void judge_round();
  std::vector<int> nearest_components(const ChainStates& block) const;
  void judge_within_modes();
  void judge_memory();
  void centre_by_component(std::vector<double>& values) const;
  void adapt();
  void adapt_length();
  void set_length(int length);
  void finish();
  int supers() const { return chains_.z.cols() - pairs_; }
  int used() const { return several_modes_ ? pairs_ : chains_.z.cols(); }  // chains whose states are refined draws
  bool good() const;
  double shortage() const;
  bool affordable(int until) const;

  const Target& target_;
  const Family& family_;
  const SuperStarts& starts_;
  const RefinedConfig& config_;
  const std::function<void(int, double)>& progress_;
  PhiloxSource random_;
  Team team_;
  RefinedDraws result_;
  int pairs_ = 0, per_super_ = 0;
  bool several_modes_;
  Chains chains_{1, 1};  // those of the pairs, then super-chain after super-chain
  ChainStates now_, before_;
  int taken_ = 0, first_kept_ = 0, stride_ = 1;
  int since_ = 0;                // steps since the pairs were recorded
  double accepted_ = 0;          // of the pairs, summed over these steps
  double spent_ = 0;             // gradients
  double spread_ = 0;            // Σ Var_q
  std::vector<int> moved_;       // accepted proposals per chain
  double last_cost_ = 0;         // of an effective draw, before the trajectories were made longer
  bool length_settled_ = false;  // longer trajectories did not pay
};

int whole(int value, int least, const char* what) {
  if (value < least) throw InputError(std::string(what) + " must be at least " + std::to_string(least));
  return value;
}

void check(const SuperStarts& starts, int dimension, int per_super) {
  if (starts.mode.empty()) throw InputError("nested R-hat needs starts, and there are none");
  if (starts.z.rows() != dimension)
    throw InputError(detail::format("the starts have dimension {} and the family {}", starts.z.rows(), dimension));
  const auto points = static_cast<std::size_t>(starts.z.cols());
  if (points != starts.mode.size() && points != starts.mode.size() * static_cast<std::size_t>(per_super))
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
      per_super_(whole(config.chains_per_start, 2, "the number of chains per start")),
      several_modes_(*std::ranges::max_element(starts.mode) > 0) {
  if (several_modes_ && config.pairs < 2) throw InputError("several modes need chains that start at draws of q");
  if (config.pairs > 0) draw_from_q();
  place_chains();
  result_.kernel = config.kernel;
  result_.most_step_size = config.most_step_size;
  if (config.step_size)
    result_.step_size = *config.step_size;
  else
    find_first_step();
  std::vector<double> mean(family.dimension()), sd(family.dimension());
  family.moments(mean, sd);
  for (const double x : sd) spread_ += square(x);
  moved_.resize(chains_.z.cols());
}

// Draws outside the support are left out.
void DrawRefiner::draw_from_q() {
  const int n = whole(config_.q_draws, 100, "the number of draws of q"), d = family_.dimension();
  std::vector<int> component;
  const Matrix<double> all = independent_draws(family_, n, random_, &component);
  std::vector<double> value(n);
  team_.for_shares(n, [&](int begin, int end, int) {
    target_.evaluate(all.view().columns(begin, end), Want::value,
                     std::span(value).subspan(begin, static_cast<std::size_t>(end - begin)), {});
  });
  result_.dropped_draws = std::ranges::count(value, -infinity);
  const int kept = n - static_cast<int>(result_.dropped_draws);
  if (kept < std::min(n, 100))
    throw Error("only " + std::to_string(kept) + " of " + std::to_string(n) +
                " draws of q lie where the posterior is finite; q cannot be refined");
  result_.z0 = Matrix<double>(d, kept);
  for (int i = 0, to = 0; i < n; ++i) {
    if (value[i] == -infinity) continue;
    copy(all.column(i), result_.z0.column(to++));
    result_.component.push_back(component[i]);
    result_.log_p0.push_back(value[i]);
  }
  result_.log_q0.resize(kept);
  family_.log_density(result_.z0, Want::value, result_.log_q0, {});
  pairs_ = std::min(kept, config_.pairs);
}

void DrawRefiner::place_chains() {
  const MatrixView<const double> starts = starts_.z;
  const int supers = static_cast<int>(starts_.mode.size()) * per_super_;
  chains_ = Chains(family_.dimension(), pairs_ + supers);
  for (int c = 0; c < pairs_; ++c) copy(result_.z0.column(c), chains_.z.column(c));
  const int same = starts.cols() == supers ? 1 : per_super_;  // chains that begin at one column
  for (int c = 0; c < supers; ++c) copy(starts.column(c / same), chains_.z.column(pairs_ + c));
  evaluate(target_, chains_, team_);
  result_.log_qt.resize(pairs_);
}

// Tries short trajectories of some of the chains.
void DrawRefiner::find_first_step() {
  const HmcConfig* const hmc = config_.kernel->as_hmc();
  double size = config_.first_step_size;
  if (size <= 0) {
    constexpr int most_pilots = 32;
    const int count = chains_.z.cols(), pilots = std::min(count, most_pilots);
    Chains some(family_.dimension(), pilots);
    for (int i = 0; i < pilots; ++i) {
      const int c = static_cast<int>(static_cast<std::int64_t>(i) * count / pilots);
      copy(chains_.z.column(c), some.z.column(i));
      copy(chains_.gradient.column(c), some.gradient.column(i));
      some.value[i] = chains_.value[c];
    }
    const std::shared_ptr<const Kernel> trial =
        hmc ? std::make_shared<Hmc>(HmcConfig{2, 1, hmc->step_sizes}) : config_.kernel;
    size = find_step_size(target_, *trial, some, 0.5, config_.acceptance,
                          PhiloxSource(config_.seed ^ 0x9e3779b97f4a7c15u), team_);
  }
  result_.step_size = size;
  if (!hmc || config_.first_step_size > 0) return;
  constexpr double quarter_turn = 1.6;  // of a standard normal: as long as it pays
  const int length = std::clamp(static_cast<int>(std::lround(quarter_turn / size)), 2, 32);
  result_.kernel = std::make_shared<Hmc>(HmcConfig{length, length - 1, hmc->step_sizes});
}

// Room for the states of `steps` steps, every stride-th of them.
ChainStates DrawRefiner::room_for(int steps, int& stride) const {
  constexpr double most_numbers = 2e7;
  const int chains = chains_.z.cols(), d = family_.dimension();
  const double most = std::max(4.0 * chains, std::min(2.0 * config_.draws, most_numbers / d));
  stride = std::max(1, static_cast<int>(std::ceil(static_cast<double>(chains) * steps / most)));
  ChainStates room(d, chains, std::max(1, steps / stride));
  if (config_.keep == Keep::gradients) room.gradient = Matrix<double>(d, room.count());
  return room;
}

void DrawRefiner::record(ChainStates& block, int state) const {
  const int each = block.per_chain();
  if (state >= each) return;
  for (int c = 0; c < chains_.z.cols(); ++c) {
    const int column = c * each + state;
    copy(chains_.z.column(c), block.z.column(column));
    block.log_p[static_cast<std::size_t>(column)] = chains_.value[c];
    if (block.gradient.cols() > 0) copy(chains_.gradient.column(c), block.gradient.column(column));
  }
}

// Goes on to `until` steps. The states of the second half are kept, and those of the quarter before it.
void DrawRefiner::run_round(int until) {
  first_kept_ = until / 2;
  if (taken_ > 0) {
    before_ = std::move(now_);
  } else {
    const int quarter = std::max(1, first_kept_ - until / 4);
    before_ = room_for(quarter, stride_);
    walk(first_kept_ - before_.per_chain() * stride_, nullptr);
    walk(first_kept_, &before_);
  }
  now_ = room_for(until - first_kept_, stride_);
  result_.checks.acceptance = 0;
  result_.checks.proposals = result_.checks.divergences = 0;
  walk(until, &now_);
}

// Goes on with the same kernel, and keeps all that was kept so far.
void DrawRefiner::extend(int until) {
  const int old = now_.per_chain(), more = (until - taken_) / stride_;
  ChainStates longer(family_.dimension(), now_.chains, old + more);
  for (int c = 0; c < now_.chains; ++c) {
    const int from = c * old, to = c * (old + more);
    copy(now_.z.view().columns(from, from + old).flat(), longer.z.view().columns(to, to + old).flat());
    std::copy_n(now_.log_p.begin() + from, old, longer.log_p.begin() + to);
  }
  now_ = std::move(longer);
  walk(taken_ + more * stride_, &now_);
}

// Goes on to `until` steps, and records every stride-th state of those after `first_kept_`, or of the last ones.
void DrawRefiner::walk(int until, ChainStates* block) {
  Refiner refiner(*result_.kernel,
                  {.steps = 1, .adapt = Adapt::off, .step_size = result_.step_size, .acceptance = config_.acceptance},
                  team_);
  ChainChecks& checks = result_.checks;
  const int first = block == &now_ ? first_kept_ : taken_;
  while (taken_ < until) {
    const Refinement step = refiner.refine(target_, chains_.view(), chains_.z.cols(),
                                           walk_part + static_cast<std::uint32_t>(taken_++), random_);
    spent_ += result_.kernel->evaluations_per_step() * chains_.z.cols();
    for (std::size_t c = 0; c < moved_.size(); ++c) moved_[c] += chains_.outcome[c] == Outcome::accepted;
    for (int c = 0; c < pairs_; ++c) accepted_ += chains_.acceptance[c] / pairs_;
    ++since_;
    if (block && (taken_ - first) % stride_ == 0) record(*block, (taken_ - first) / stride_ - 1);
    if (block == &now_) {  // the mean over all its proposals
      const double all = static_cast<double>(checks.proposals + step.proposals);
      if (all > 0)
        checks.acceptance += (step.acceptance - checks.acceptance) * static_cast<double>(step.proposals) / all;
      checks.proposals += step.proposals;
      checks.divergences += step.divergent;
    }
    if ((taken_ & (taken_ - 1)) != 0 && !(taken_ == until && block == &now_)) continue;
    if (pairs_ > 0) record_pairs(accepted_ / since_);
    accepted_ = since_ = 0;
  }
  checks.stuck = static_cast<double>(std::ranges::count(moved_, 0)) / static_cast<double>(moved_.size());
}

void DrawRefiner::record_pairs(double acceptance) {
  const int d = family_.dimension();
  family_.log_density(chains_.z.view().columns(0, pairs_), Want::value, result_.log_qt, {});
  Moments vcd;
  double jump = 0;
  for (int i = 0; i < pairs_; ++i) {
    vcd.add(chains_.value[i] - result_.log_qt[i] - (result_.log_p0[i] - result_.log_q0[i]));
    for (int k = 0; k < d; ++k) jump += square(chains_.z(k, i) - result_.z0(k, i));
  }
  const auto pairs = static_cast<std::size_t>(pairs_);
  result_.at.push_back(
      {.steps = taken_,
       .vcd = vcd.estimate(),
       .acceptance = acceptance,
       .jump = jump / (2 * spread_ * pairs_),
       .correlation = correlation(std::span(result_.log_p0).first(pairs), std::span(chains_.value).first(pairs))});
}

void DrawRefiner::judge_round() {
  ChainChecks& checks = result_.checks;
  if (several_modes_) {
    judge_within_modes();
  } else {
    judge_starts(now_, pairs_, per_super_, starts_.mode, checks);
    judge_moments(before_, now_, checks);
  }
  if (pairs_ > 0) judge_memory();
  checks.effective_needed = least_effective;
  checks.error_wanted = config_.error;
  checks.error = 1 / std::sqrt(checks.effective);
  if (progress_) progress_(taken_, checks.nested_rhat);
  if (!config_.printed || pairs_ == 0 || !arrived(checks)) return;
  const ChainStates states = several_modes_ ? some_chains(now_, 0, used()) : now_;
  checks.error = largest_error(config_.printed(states.z), states.chains);
}

// The component of q that each state is most likely of.
std::vector<int> DrawRefiner::nearest_components(const ChainStates& block) const {
  const int d = family_.dimension();
  std::vector<int> nearest(static_cast<std::size_t>(block.count()));
  std::vector<double> best(nearest.size(), -infinity), log_weight(family_.components()), e(d);
  family_.log_weights(log_weight);
  for (int k = 0; k < family_.components(); ++k) {
    const std::optional<Normal> normal = family_.component(k);
    if (!normal) return nearest;
    for (int i = 0; i < block.count(); ++i) {
      normal->whiten(block.z.column(i), e);
      const double value = log_weight[k] - normal->log_normalizer() - 0.5 * dot(e, e);
      if (!(value > best[i])) continue;
      best[i] = value;
      nearest[i] = k;
    }
  }
  return nearest;
}

// The states about the means of their components: chains need not leave their modes, and now and then do.
void DrawRefiner::judge_within_modes() {
  ChainStates before = before_, now = now_;
  const int d = family_.dimension();
  std::vector<std::vector<Moments>> moments(family_.components(), std::vector<Moments>(d + 1));
  const std::vector<int> of_now = nearest_components(now), of_before = nearest_components(before);
  for (int i = 0; i < now.count(); ++i) {
    for (int k = 0; k < d; ++k) moments[of_now[i]][k].add(now.z(k, i));
    moments[of_now[i]][d].add(now.log_p[i]);
  }
  const auto centre = [&](ChainStates& block, const std::vector<int>& component) {
    for (int i = 0; i < block.count(); ++i) {
      for (int k = 0; k < d; ++k) block.z(k, i) -= moments[component[i]][k].mean();
      block.log_p[i] -= moments[component[i]][d].mean();
    }
  };
  centre(now, of_now);
  centre(before, of_before);
  judge_starts(now, pairs_, per_super_, starts_.mode, result_.checks);
  judge_moments(some_chains(before, 0, used()), some_chains(now, 0, used()), result_.checks);
}

// Correlations about the means of the draws' components, since chains need not leave their mode.
void DrawRefiner::judge_memory() {
  const int d = family_.dimension();
  ChainChecks& checks = result_.checks;
  checks.memory = 0;
  checks.memory_limit = most_memory + std::sqrt(2 * std::log((d + 1.0) / 0.02) / pairs_);
  std::vector<double> before(pairs_), after(pairs_);
  for (int k = -1; k < d; ++k) {
    for (int i = 0; i < pairs_; ++i) {
      before[i] = k < 0 ? result_.log_p0[i] : result_.z0(k, i);
      after[i] = k < 0 ? chains_.value[i] : chains_.z(k, i);
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

// After a round whose states are not used: the step size follows its acceptance, and stays well below one at which
// trajectories diverged. Trajectories keep their length where it shrinks for that.
void DrawRefiner::adapt() {
  if (config_.step_size) return;
  const ChainChecks& checks = result_.checks;
  const double rejected = std::max(1 - checks.acceptance, 0.1 * (1 - config_.acceptance));
  double size = result_.step_size;
  const double factor = std::clamp(std::sqrt((1 - config_.acceptance) / rejected), 0.5, 1.5);  // it grows with ε²
  if (std::abs(std::log(factor)) > 0.1) size *= factor;
  constexpr int settled_after = 8;  // steps: before that, chains may come from bad starts
  if (first_kept_ >= settled_after &&
      static_cast<double>(checks.divergences) > 0.5 * most_divergent * static_cast<double>(checks.proposals))
    result_.most_step_size = 0.6 * result_.step_size;
  const HmcConfig* const hmc = result_.kernel->as_hmc();
  if (size > result_.most_step_size) {
    size = result_.most_step_size;
    constexpr double half_turn = 3.2;  // of a standard normal
    const double length = std::min(hmc ? hmc->leapfrog * result_.step_size : 0, half_turn) / size;
    if (hmc && length > hmc->leapfrog) set_length(static_cast<int>(std::ceil(length)));
  }
  result_.step_size = size;
  adapt_length();
}

void DrawRefiner::set_length(int length) {
  constexpr int longest = 512;
  length = std::clamp(length, 1, longest);
  result_.kernel = std::make_shared<Hmc>(HmcConfig{length, length - 1, result_.kernel->as_hmc()->step_sizes});
}

// Trajectories get twice as long where an effective draw takes many steps, as long as that pays.
void DrawRefiner::adapt_length() {
  const HmcConfig* const hmc = result_.kernel->as_hmc();
  constexpr int least_states = 8;
  constexpr double many_steps = 5;
  if (!hmc || length_settled_ || now_.per_chain() < least_states) return;
  const double steps = stride_ * now_.count() / std::max(1.0, result_.checks.effective);  // per effective draw
  const double cost = steps * hmc->leapfrog;
  if (last_cost_ > 0 && cost > last_cost_) {
    length_settled_ = true;
    set_length(hmc->leapfrog / 2);
  } else if (steps > many_steps) {
    last_cost_ = cost;
    set_length(2 * hmc->leapfrog);
  }
}

// Whether the chains have arrived, with some margin for how long they must be.
bool DrawRefiner::good() const {
  const ChainChecks& checks = result_.checks;
  constexpr double wanted_per_chain = 3;
  constexpr int least_burn_in = 8;
  return first_kept_ >= least_burn_in && arrived(checks) && checks.acceptance >= least_chain_acceptance &&
         checks.per_chain >= wanted_per_chain;
}

// How many times as many states are needed for the errors that are wanted.
double DrawRefiner::shortage() const {
  const ChainChecks& checks = result_.checks;
  if (several_modes_) return 0;  // longer chains do not help
  const double tail = 0.25 / square(checks.error_wanted);
  return std::max(square(checks.error / checks.error_wanted), tail / checks.tail_effective);
}

bool DrawRefiner::affordable(int until) const {
  if (until > config_.most_steps || (config_.stop && *config_.stop)) return false;
  const double cost = chains_.z.cols() * result_.kernel->evaluations_per_step() * (until - taken_);
  return config_.gradients == 0 || spent_ + cost <= static_cast<double>(config_.gradients);
}

void DrawRefiner::finish() {
  RefinedDraws& r = result_;
  r.steps = taken_;
  r.states = several_modes_ ? some_chains(now_, 0, used()) : std::move(now_);
  r.before = several_modes_ ? some_chains(before_, 0, used()) : std::move(before_);
  const int d = family_.dimension(), n = r.states.count();
  r.super_ends = Matrix<double>(d, supers());
  copy(chains_.z.view().columns(pairs_, chains_.z.cols()).flat(), r.super_ends.view().flat());
  r.log_q.resize(n);
  family_.log_density(r.states.z, Want::value, r.log_q, {});
  if (pairs_ == 0) return;
  r.zt = Matrix<double>(d, pairs_);
  copy(chains_.z.view().columns(0, pairs_).flat(), r.zt.view().flat());
  r.log_pt.assign(chains_.value.begin(), chains_.value.begin() + pairs_);
  std::vector<double> f(n);
  for (int i = 0; i < n; ++i) f[i] = r.states.log_p[i] - r.log_q[i];
  Moments f0;
  for (std::size_t i = 0; i < r.log_p0.size(); ++i) f0.add(r.log_p0[i] - r.log_q0[i]);
  const Estimate after = mean_over_chains(f, r.states.chains), before = f0.estimate();
  r.vcd = {after.mean - before.mean, std::hypot(after.se, before.se)};
}

RefinedDraws DrawRefiner::run() {
  int until = whole(config_.steps, 1, "the steps of a refinement");
  whole(config_.draws, 100, "the number of draws");
  until = std::max(4, until + until % 2);
  run_round(until);
  judge_round();
  while (!good() || shortage() > 1) {
    const int longer = good() ? static_cast<int>(std::ceil(now_.per_chain() * std::min(1.0, 1.1 * shortage() - 1))) : 0;
    until = good() ? taken_ + stride_ * longer : 2 * taken_;
    if (!affordable(until)) {
      result_.capped = true;
      break;
    }
    if (longer > 0) {
      extend(until);
    } else {
      adapt();
      run_round(until);
    }
    judge_round();
  }
  if (result_.capped && pairs_ == 0) adapt();  // for whoever goes on
  finish();
  return std::move(result_);
}

}  // namespace

bool arrived(const ChainChecks& checks) {
  return checks.nested_rhat < most_rhat && checks.spread <= checks.spread_limit && checks.drift <= checks.drift_limit &&
         checks.memory <= checks.memory_limit && checks.stuck <= most_stuck &&
         static_cast<double>(checks.divergences) <= most_divergent * static_cast<double>(checks.proposals);
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
  check(starts, family.dimension(), config.chains_per_start);
  return DrawRefiner(target, family, starts, config, progress).run();
}

}  // namespace hone
