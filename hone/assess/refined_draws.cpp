#include "hone/assess/refined_draws.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/assess/chain_checks.hpp"
#include "hone/assess/chain_rounds.hpp"
#include "hone/assess/importance.hpp"
#include "hone/assess/kernel_tuning.hpp"
#include "hone/assess/map_fit.hpp"
#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/base/given.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/scalar.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/target/batches.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

class DrawRefiner {
 public:
  DrawRefiner(const Target& target, const Family& family, const SuperStarts& starts, const RefinedConfig& config,
              const std::function<void(int, double)>& progress);
  RefinedDraws run();

 private:
  int draw_from_q();
  Chains place_chains(int pairs);
  void leave_out(int part);
  bool go_on(int longer, int until, int part, const KernelTuning& tuning);
  void record_pairs(double acceptance);
  void judge_round();
  LargestErrors errors_of(const ChainStates& states) const;
  Pairs pairs() const;
  bool judge_across_modes();
  bool masses_are_known() const;
  KernelTuning adapted(bool moved);
  bool adapt_coordinates(const ChainStates& states);
  void finish();
  int used() const { return several_modes_ ? rounds_->pairs() : chains(); }  // chains whose states are refined draws
  int chains() const { return rounds_->chains().z.cols(); }
  bool good() const;
  double shortage() const;
  bool within_budget(int until, int part, const Kernel& kernel) const;
  bool affordable(int until, int part, const Kernel& kernel) const;
  int affordable_part(int until, const Kernel& kernel) const;

  CountedTarget target_;
  const Family& family_;
  const SuperStarts& starts_;
  const RefinedConfig& config_;
  const std::function<void(int, double)>& progress_;
  PhiloxSource random_;
  Team team_;
  RefinedDraws result_;
  bool several_modes_;
  bool masses_known_ = true;  // of the modes
  double spread_ = 0;         // Σ Var_q
  KernelTuning tuning_;
  std::optional<ChainRounds> rounds_;  // from the constructor on
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
      several_modes_(*std::ranges::max_element(starts.mode) > 0),
      tuning_(config) {
  whole(config.chains_per_start, whole(config.least_per_start, 2, "the least number of chains per start"),
        "the number of chains per start");
  if (several_modes_ && config.pairs < 2) throw InputError("several modes need chains that start at draws of q");
  const int pairs = config.pairs > 0 ? draw_from_q() : 0;
  if (several_modes_) masses_known_ = masses_are_known();
  Chains chains = place_chains(pairs);
  result_.log_qt.resize(static_cast<std::size_t>(pairs));
  result_.checks.chains_begun = chains.z.cols();
  std::vector<double> mean(family.dimension()), sd(family.dimension());
  family.moments(mean, sd);
  for (const double x : sd) spread_ += square(x);
  rounds_.emplace(target_, config, random_, team_, std::move(chains), pairs, config.chains_per_start,
                  [this](double acceptance) { record_pairs(acceptance); });
  if (config.earlier) adapt_coordinates(*config.earlier);
  if (rounds_->map())
    tuning_.begin_anew(rounds_->target(), rounds_->moving(), team_);
  else
    tuning_.begin(target_, rounds_->moving(), team_);
}

// Chains move in nonlinear coordinates if their states look more like draws of a standard normal there.
bool DrawRefiner::adapt_coordinates(const ChainStates& states) {
  if (config_.coordinates == ChainCoordinates::affine || config_.step_size || several_modes_) return false;
  const double effective = std::max<double>(states.chains, result_.checks.effective);
  std::shared_ptr<const TransportMap> map = better_map(states, effective, rounds_->map().get(), config_.whitening);
  if (!map) return false;
  rounds_->move_by(std::move(map));
  return true;
}

// Draws outside the support are left out. Returns how many chains start at them.
int DrawRefiner::draw_from_q() {
  const int n = whole(config_.q_draws, 100, "the number of draws of q"), d = family_.dimension();
  std::vector<int> component;
  const Matrix<double> all = independent_draws(family_, n, random_, &component);
  std::vector<double> value(n);
  evaluate_in_batches(target_, all, Want::value, value, {}, team_);
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
  return std::min(kept, config_.pairs);
}

Chains DrawRefiner::place_chains(int pairs) {
  const MatrixView<const double> starts = starts_.z;
  const int per_super = config_.chains_per_start, supers = static_cast<int>(starts_.mode.size()) * per_super;
  Chains chains(family_.dimension(), pairs + supers);
  for (int c = 0; c < pairs; ++c) copy(result_.z0.column(c), chains.z.column(c));
  const int same = starts.cols() == supers ? 1 : per_super;  // chains that begin at one column
  for (int c = 0; c < supers; ++c) copy(starts.column(c / same), chains.z.column(pairs + c));
  evaluate_in_batches(target_, chains.z, Want::both, chains.value, chains.gradient, team_);
  return chains;
}

void DrawRefiner::record_pairs(double acceptance) {
  const int d = family_.dimension();
  const Chains& chains = rounds_->chains();
  const int count = rounds_->pairs();
  family_.log_density(MatrixView<const double>(chains.z).columns(0, count), Want::value, result_.log_qt, {});
  Moments vcd;
  double jump = 0;
  for (int i = 0; i < count; ++i) {
    vcd.add(chains.value[i] - result_.log_qt[i] - (result_.log_p0[i] - result_.log_q0[i]));
    for (int k = 0; k < d; ++k) jump += square(chains.z(k, i) - result_.z0(k, i));
  }
  const auto pairs = static_cast<std::size_t>(count);
  result_.at.push_back(
      {.steps = rounds_->taken(),
       .vcd = vcd.estimate(),
       .acceptance = acceptance,
       .jump = jump / (2 * spread_ * count),
       .correlation = correlation(std::span(result_.log_p0).first(pairs), std::span(chains.value).first(pairs))});
}

Pairs DrawRefiner::pairs() const {
  const Chains& chains = rounds_->chains();
  return {result_.z0,        result_.log_p0,       chains.z,        chains.value,
          result_.component, family_.components(), rounds_->pairs()};
}

// Whether q's weights of its components are the modes' masses. If not, only chains that travel between modes show
// these.
bool DrawRefiner::masses_are_known() const {
  std::vector<double> ratio(result_.log_p0.size());
  for (std::size_t i = 0; i < ratio.size(); ++i) ratio[i] = result_.log_p0[i] - result_.log_q0[i];
  return mode_masses(smooth_weights(ratio), result_.component, family_.components()).known();
}

// If chains travel between the modes, q's weights do not matter, and all chains are judged alike.
bool DrawRefiner::judge_across_modes() {
  ChainChecks& checks = result_.checks;
  const std::vector<int> alike(starts_.mode.size());
  judge_starts(rounds_->now(), rounds_->pairs(), rounds_->per_super(), alike, checks);
  judge_moments(rounds_->before(), rounds_->now(), checks);
  Pairs all = pairs();
  all.components = 1;
  judge_memory(all, checks);
  checks.crosses_modes = arrived(checks) && checks.per_chain >= enough_per_chain;
  return checks.crosses_modes;
}

void DrawRefiner::judge_round() {
  ChainChecks& checks = result_.checks;
  const ChainStates &before = rounds_->before(), &now = rounds_->now();
  const ChainRounds::Course& course = rounds_->course();
  const int pair_count = rounds_->pairs(), per_super = rounds_->per_super();
  checks.acceptance = course.acceptance;
  checks.proposals = course.proposals;
  checks.divergences = course.divergences;
  checks.stuck = course.stuck;
  checks.burn_in = rounds_->first_kept();
  if (several_modes_ && !judge_across_modes()) {
    judge_within_modes(family_, before, now, pair_count, per_super, starts_.mode, checks);
  } else if (!several_modes_) {
    judge_starts(now, pair_count, per_super, starts_.mode, checks);
    judge_moments(before, now, checks);
  }
  if (pair_count > 0 && !checks.crosses_modes) judge_memory(pairs(), checks);
  result_.adapted_coordinates = rounds_->map() != nullptr;
  const double d = family_.dimension();
  if (result_.adapted_coordinates) checks.bfmi = d / (0.5 * d + course.log_p.variance());
  result_.drifts.push_back({rounds_->taken(), checks.drift, checks.drift_limit});
  checks.effective_needed = least_effective;
  checks.error_wanted = config_.error;
  checks.error = 1 / std::sqrt(checks.effective);
  checks.sd_error = 0;
  checks.sd_error_value = -1;
  checks.chains = chains();
  if (progress_) progress_(rounds_->taken(), checks.nested_rhat);
  if (!config_.printed || pair_count == 0 || !arrived(checks)) return;
  try {
    const LargestErrors errors = several_modes_ ? errors_of(some_chains(now, 0, used())) : errors_of(now);
    checks.error = errors.mean;
    checks.sd_error = errors.sd;
    checks.sd_error_value = errors.sd_value;
  } catch (const Stopped&) {
    // The fit was stopped: the errors of the coordinates stand for those of the printed values.
  }
}

LargestErrors DrawRefiner::errors_of(const ChainStates& states) const {
  const Matrix<double> values = config_.printed(states.z);
  return largest_errors(values, states.chains, config_.parameters.value_or(values.rows()));
}

// The kernel and step size for the next round. In new coordinates those count that suit them, if they are much better.
KernelTuning DrawRefiner::adapted(bool moved) {
  const ChainStates& now = rounds_->now();
  const int stride = rounds_->stride();
  const double states = now.count(), draws = std::max(1.0, result_.checks.effective);
  KernelTuning next = tuning_;
  next.adapt(result_.checks, {.burn_in = rounds_->first_kept(),
                              .steps = stride * now.per_chain(),
                              .steps_per_draw = stride * states / draws,
                              .draws_per_chain = draws / now.chains,
                              .draws_per_state = draws / states});
  if (!moved) return next;
  KernelTuning anew = tuning_;
  constexpr double much_larger = 1.4;
  try {
    anew.begin_anew(rounds_->target(), rounds_->moving(), team_);
  } catch (const Stopped&) {  // the next round will end the refinement
    return next;
  }
  return anew.step_size() > much_larger * next.step_size() ? anew : next;
}

// Whether the chains have arrived, with some margin for how long they must be.
bool DrawRefiner::good() const {
  const ChainChecks& checks = result_.checks;
  // Where trajectories diverge there is a region, such as the neck of a funnel, that chains seldom enter: they take
  // longer to forget that they began outside.
  constexpr double seldom = 0.001;
  const bool diverges = static_cast<double>(checks.divergences) > seldom * static_cast<double>(checks.proposals);
  const int least_burn_in = diverges ? 32 : 8;
  return rounds_->first_kept() >= least_burn_in && (masses_known_ || checks.crosses_modes) && arrived(checks) &&
         checks.acceptance >= least_chain_acceptance && checks.per_chain >= enough_per_chain;
}

// The factor by which the number of states must grow for the wanted errors.
double DrawRefiner::shortage() const {
  const ChainChecks& checks = result_.checks;
  if (several_modes_) return 0;  // longer chains do not help
  const double tail = 0.25 / square(checks.error_wanted);
  return std::max({square(checks.error / checks.error_wanted), square(checks.sd_error / most_sd_error),
                   tail / checks.tail_effective});
}

// Whether the budget lets one chain of `part` go on to `until` with the kernel.
bool DrawRefiner::within_budget(int until, int part, const Kernel& kernel) const {
  const int going_on = chains() / part;
  const double cost = going_on * kernel.evaluations_per_step() * (until - rounds_->taken());
  return config_.gradients == 0 ||
         static_cast<double>(target_.count()) + cost <= static_cast<double>(config_.gradients);
}

bool DrawRefiner::affordable(int until, int part, const Kernel& kernel) const {
  return until <= config_.most_steps && !(config_.stop && *config_.stop) && within_budget(until, part, kernel);
}

// All chains go on where the budget allows it, or else one of four, or of two: whether chains arrive depends on how
// long they are, not on how many. 0: none can.
int DrawRefiner::affordable_part(int until, const Kernel& kernel) const {
  if (affordable(until, 1, kernel)) return 1;
  for (const int part : {4, 2})
    if (!good() && rounds_->per_super() >= part * config_.least_per_start && affordable(until, part, kernel))
      return part;
  return 0;
}

void DrawRefiner::finish() {
  RefinedDraws& r = result_;
  const Chains& chains = rounds_->chains();
  const int pairs = rounds_->pairs();
  r.steps = rounds_->taken();
  r.kernel = tuning_.kernel();
  r.step_size = tuning_.step_size();
  r.most_step_size = tuning_.most_step_size();
  r.chains_per_start = rounds_->per_super();
  r.states = several_modes_ ? some_chains(rounds_->now(), 0, used()) : std::move(rounds_->now());
  r.before = several_modes_ ? some_chains(rounds_->before(), 0, used()) : std::move(rounds_->before());
  const int d = family_.dimension(), n = r.states.count();
  r.super_ends = Matrix<double>(d, rounds_->supers());
  copy(chains.z.view().columns(pairs, chains.z.cols()).flat(), r.super_ends.view().flat());
  r.log_q.resize(n);
  family_.log_density(r.states.z, Want::value, r.log_q, {});
  if (pairs == 0) return;
  r.zt = Matrix<double>(d, pairs);
  copy(chains.z.view().columns(0, pairs).flat(), r.zt.view().flat());
  r.log_pt.assign(chains.value.begin(), chains.value.begin() + pairs);
  std::vector<double> f(n);
  for (int i = 0; i < n; ++i) f[i] = r.states.log_p[i] - r.log_q[i];
  Moments f0;
  for (std::size_t i = 0; i < r.log_p0.size(); ++i) f0.add(r.log_p0[i] - r.log_q0[i]);
  const Estimate after = mean_over_chains(f, r.states.chains), before = f0.estimate();
  r.vcd = {after.mean - before.mean, std::hypot(after.se, before.se)};
}

void DrawRefiner::leave_out(int part) {
  rounds_->leave_out(part);
  result_.log_qt.resize(static_cast<std::size_t>(rounds_->pairs()));
}

// One more round with every `part`-th chain, or more states of this one. False if an evaluation threw Stopped: then
// nothing has changed.
bool DrawRefiner::go_on(int longer, int until, int part, const KernelTuning& tuning) {
  ChainRounds::Mark mark = rounds_->mark(part);
  const std::vector<PairsAt> at = result_.at;
  const std::vector<double> log_qt = result_.log_qt;
  try {
    if (longer > 0) {
      rounds_->extend(longer, tuning);
    } else {
      if (part > 1) leave_out(part);
      rounds_->round(until, tuning);
    }
    rounds_->complete();
  } catch (const Stopped&) {
    rounds_->go_back(std::move(mark));
    result_.at = at;
    result_.log_qt = log_qt;
    return false;
  }
  tuning_ = tuning;
  judge_round();
  return true;
}

RefinedDraws DrawRefiner::run() {
  int until = whole(config_.steps, 1, "the steps of a refinement");
  whole(config_.draws, 100, "the number of draws");
  until = std::max(4, until + until % 2);
  // The first round is always run, but by fewer chains where the budget is small.
  while (rounds_->pairs() > 0 && rounds_->per_super() >= 2 * config_.least_per_start &&
         !within_budget(until, 1, *tuning_.kernel()))
    leave_out(2);
  rounds_->round(until, tuning_);
  judge_round();
  while (!good() || shortage() > 1) {
    const int each = rounds_->now().per_chain(), taken = rounds_->taken();
    const int longer = good() ? static_cast<int>(std::ceil(each * std::min(1.0, 1.1 * shortage() - 1))) : 0;
    until = good() ? taken + rounds_->stride() * longer : 2 * taken;
    const bool moved = !good() && affordable_part(until, *tuning_.kernel()) > 0 && adapt_coordinates(rounds_->now());
    KernelTuning next = good() ? tuning_ : adapted(moved);
    int part = affordable_part(until, *next.kernel());
    if (part == 0 && !good()) {  // longer trajectories cost too much: one more round with the present ones
      next = tuning_;
      part = affordable_part(until, *next.kernel());
    }
    if (part == 0 || !go_on(longer, until, part, next)) {
      result_.capped = true;
      break;
    }
  }
  if (result_.capped && rounds_->pairs() == 0) tuning_ = adapted(false);  // for a caller that goes on
  finish();
  return std::move(result_);
}

}  // namespace

RefinedDraws refine_draws(const Target& target, const Family& family, const SuperStarts& starts,
                          const RefinedConfig& config, const std::function<void(int, double)>& progress) {
  given(config.kernel, "kernel");
  check(starts, family.dimension(), config.chains_per_start);
  return DrawRefiner(target, family, starts, config, progress).run();
}

}  // namespace hone
