#include "hone/assess/refined_draws.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/assess/chain_checks.hpp"
#include "hone/assess/importance.hpp"
#include "hone/assess/kernel_tuning.hpp"
#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/base/given.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/scalar.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// Random streams of their own, beside those of independent_draws.
constexpr std::uint32_t walk_part = assessment_iteration + (1u << 24);

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
  void run_round(int until);
  void extend(int until);
  void walk(int until, ChainStates* block);
  ChainStates room_for(int steps, int& stride) const;
  void record(ChainStates& block, int state) const;
  void record_moves(int state);
  void go_back(int states);
  void leave_out(int part);
  bool go_on(int longer, int until, int part);
  void record_pairs(double acceptance);
  void judge_round();
  Pairs pairs() const;
  bool judge_across_modes();
  bool masses_are_known() const;
  void adapt();
  void finish();
  int supers() const { return chains_.z.cols() - pairs_; }
  int used() const { return several_modes_ ? pairs_ : chains_.z.cols(); }  // chains whose states are refined draws
  bool good() const;
  double shortage() const;
  bool affordable(int until, int part) const;
  int affordable_part(int until) const;

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
  bool masses_known_ = true;          // of the modes
  Chains chains_{1, 1};               // those of the pairs, then super-chain after super-chain
  ChainStates now_, before_, older_;  // the last: what `before_` was, until a round is complete
  std::vector<double> value_before_;  // log p where the trajectories of a step begin
  int taken_ = 0, first_kept_ = 0, stride_ = 1;
  int since_ = 0;           // steps since the pairs were recorded
  double accepted_ = 0;     // of the pairs, summed over these steps
  double spent_ = 0;        // gradients
  double spread_ = 0;       // Σ Var_q
  std::vector<int> moved_;  // accepted proposals per chain
  KernelTuning tuning_;
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
      per_super_(whole(config.chains_per_start,
                       whole(config.least_per_start, 2, "the least number of chains per start"),
                       "the number of chains per start")),
      several_modes_(*std::ranges::max_element(starts.mode) > 0),
      tuning_(config) {
  if (several_modes_ && config.pairs < 2) throw InputError("several modes need chains that start at draws of q");
  if (config.pairs > 0) draw_from_q();
  if (several_modes_) masses_known_ = masses_are_known();
  place_chains();
  result_.checks.chains_begun = chains_.z.cols();
  tuning_.begin(target, chains_, team_);
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

// Room for the states of `steps` steps, every stride-th of them.
ChainStates DrawRefiner::room_for(int steps, int& stride) const {
  constexpr double most_numbers = 2e7, least_states = 8;  // of a chain: enough_per_chain effective ones must fit
  const int chains = chains_.z.cols(), d = family_.dimension();
  const double most = std::max(least_states * chains, std::min(2.0 * config_.draws, most_numbers / d));
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

// How the chains got to a state of `now_`. Momenta are made again from their random numbers.
void DrawRefiner::record_moves(int state) {
  const int each = now_.per_chain();
  if (state >= each) return;
  std::vector<double> momentum(static_cast<std::size_t>(family_.dimension()));
  for (int c = 0; c < chains_.z.cols(); ++c) {
    StateMove& move = now_.moves[static_cast<std::size_t>(c * each + state)];
    move.acceptance = chains_.acceptance[c];
    move.diverged = chains_.outcome[c] != Outcome::outside && chains_.acceptance[c] == 0;
    move.energy = std::nan("");
    if (!tuning_.kernel()->as_hmc()) continue;
    random_.normals(
        {Purpose::momentum, walk_part + static_cast<std::uint32_t>(taken_ - 1), static_cast<std::uint32_t>(c), 0},
        momentum);
    move.energy = 0.5 * dot(momentum, momentum) - value_before_[static_cast<std::size_t>(c)];
  }
}

// Goes on to `until` steps. The states of the second half are kept, and those of the quarter before it.
void DrawRefiner::run_round(int until) {
  first_kept_ = until / 2;
  if (taken_ > 0) {
    older_ = std::move(before_);
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
    std::copy_n(now_.moves.begin() + from, old, longer.moves.begin() + to);
  }
  now_ = std::move(longer);
  walk(taken_ + more * stride_, &now_);
}

// Goes on to `until` steps, and records every stride-th state of those after `first_kept_`, or of the last ones.
void DrawRefiner::walk(int until, ChainStates* block) {
  Refiner refiner(*tuning_.kernel(),
                  {.steps = 1, .adapt = Adapt::off, .step_size = tuning_.step_size(), .acceptance = config_.acceptance},
                  team_);
  ChainChecks& checks = result_.checks;
  const int first = block == &now_ ? first_kept_ : taken_;
  const bool final = block == &now_ && config_.keep == Keep::points;
  while (taken_ < until) {
    const bool due = block && (taken_ + 1 - first) % stride_ == 0;
    if (final && due) value_before_ = chains_.value;
    const Refinement step = refiner.refine(target_, chains_.view(), chains_.z.cols(),
                                           walk_part + static_cast<std::uint32_t>(taken_++), random_);
    spent_ += tuning_.kernel()->evaluations_per_step() * chains_.z.cols();
    for (std::size_t c = 0; c < moved_.size(); ++c) moved_[c] += chains_.outcome[c] == Outcome::accepted;
    for (int c = 0; c < pairs_; ++c) accepted_ += chains_.acceptance[c] / pairs_;
    ++since_;
    if (due) record(*block, (taken_ - first) / stride_ - 1);
    if (final && due) record_moves((taken_ - first) / stride_ - 1);
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

Pairs DrawRefiner::pairs() const {
  return {result_.z0, result_.log_p0, chains_.z, chains_.value, result_.component, family_.components(), pairs_};
}

// Whether q's weights of its components are those of the modes. If not, only chains that travel between them tell.
bool DrawRefiner::masses_are_known() const {
  std::vector<double> ratio(result_.log_p0.size());
  for (std::size_t i = 0; i < ratio.size(); ++i) ratio[i] = result_.log_p0[i] - result_.log_q0[i];
  return mode_masses(smooth_weights(ratio), result_.component, family_.components()).known();
}

// Where chains travel between the modes, q's weights of them do not matter: then all chains are judged alike.
bool DrawRefiner::judge_across_modes() {
  ChainChecks& checks = result_.checks;
  const std::vector<int> alike(starts_.mode.size());
  judge_starts(now_, pairs_, per_super_, alike, checks);
  judge_moments(before_, now_, checks);
  Pairs all = pairs();
  all.components = 1;
  judge_memory(all, checks);
  checks.crosses_modes = arrived(checks) && checks.per_chain >= enough_per_chain;
  return checks.crosses_modes;
}

void DrawRefiner::judge_round() {
  ChainChecks& checks = result_.checks;
  checks.burn_in = first_kept_;
  if (several_modes_ && !judge_across_modes()) {
    judge_within_modes(family_, before_, now_, pairs_, per_super_, starts_.mode, checks);
  } else if (!several_modes_) {
    judge_starts(now_, pairs_, per_super_, starts_.mode, checks);
    judge_moments(before_, now_, checks);
  }
  if (pairs_ > 0 && !checks.crosses_modes) judge_memory(pairs(), checks);
  checks.effective_needed = least_effective;
  checks.error_wanted = config_.error;
  checks.error = 1 / std::sqrt(checks.effective);
  checks.sd_error = 0;
  checks.sd_error_value = -1;
  checks.chains = chains_.z.cols();
  if (progress_) progress_(taken_, checks.nested_rhat);
  if (!config_.printed || pairs_ == 0 || !arrived(checks)) return;
  const ChainStates states = several_modes_ ? some_chains(now_, 0, used()) : now_;
  const LargestErrors errors = largest_errors(config_.printed(states.z), states.chains, config_.parameters);
  checks.error = errors.mean;
  checks.sd_error = errors.sd;
  checks.sd_error_value = errors.sd_value;
}

void DrawRefiner::adapt() {
  const double states = now_.count(), draws = std::max(1.0, result_.checks.effective);
  tuning_.adapt(result_.checks, {first_kept_, stride_ * now_.per_chain(), stride_ * states / draws, draws / states});
}

// Whether the chains have arrived, with some margin for how long they must be.
bool DrawRefiner::good() const {
  const ChainChecks& checks = result_.checks;
  constexpr int least_burn_in = 8;
  return first_kept_ >= least_burn_in && (masses_known_ || checks.crosses_modes) && arrived(checks) &&
         checks.acceptance >= least_chain_acceptance && checks.per_chain >= enough_per_chain;
}

// How many times as many states are needed for the errors that are wanted.
double DrawRefiner::shortage() const {
  const ChainChecks& checks = result_.checks;
  if (several_modes_) return 0;  // longer chains do not help
  const double tail = 0.25 / square(checks.error_wanted);
  return std::max({square(checks.error / checks.error_wanted), square(checks.sd_error / most_sd_error),
                   tail / checks.tail_effective});
}

// Whether one chain of `part` may go on to `until`.
bool DrawRefiner::affordable(int until, int part) const {
  if (until > config_.most_steps || (config_.stop && *config_.stop)) return false;
  const double cost = chains_.z.cols() / part * tuning_.kernel()->evaluations_per_step() * (until - taken_);
  return config_.gradients == 0 || spent_ + cost <= static_cast<double>(config_.gradients);
}

// All chains go on where the budget allows it, or else one of four, or of two: whether chains arrive depends on how
// long they are, not on how many. 0: none can.
int DrawRefiner::affordable_part(int until) const {
  if (affordable(until, 1)) return 1;
  for (const int part : {4, 2})
    if (!good() && per_super_ >= part * config_.least_per_start && affordable(until, part)) return part;
  return 0;
}

void DrawRefiner::finish() {
  RefinedDraws& r = result_;
  r.steps = taken_;
  r.kernel = tuning_.kernel();
  r.step_size = tuning_.step_size();
  r.most_step_size = tuning_.most_step_size();
  r.chains_per_start = per_super_;
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

// Takes back a round that was not completed: `states` states of each chain were kept before it.
void DrawRefiner::go_back(int states) {
  if (older_.count() > 0) {
    now_ = std::move(before_);
    before_ = std::move(older_);
    return;
  }
  ChainStates kept(family_.dimension(), now_.chains, states);
  const int each = now_.per_chain();
  for (int c = 0; c < now_.chains; ++c) {
    copy(now_.z.view().columns(c * each, c * each + states).flat(),
         kept.z.view().columns(c * states, (c + 1) * states).flat());
    std::copy_n(now_.log_p.begin() + c * each, states, kept.log_p.begin() + c * states);
    std::copy_n(now_.moves.begin() + c * each, states, kept.moves.begin() + c * states);
  }
  now_ = std::move(kept);
}

// Goes on with one chain in `part`, of the pairs and of every super-chain.
void DrawRefiner::leave_out(int part) {
  std::vector<int> kept;
  for (int c = 0; c < pairs_ / part; ++c) kept.push_back(c);
  for (int c = pairs_; c < chains_.z.cols(); ++c)
    if ((c - pairs_) % per_super_ < per_super_ / part) kept.push_back(c);
  const Chains all = std::exchange(chains_, Chains(family_.dimension(), static_cast<int>(kept.size())));
  const ChainStates states = std::exchange(now_, ChainStates(family_.dimension(), chains_.z.cols(), now_.per_chain()));
  const std::vector<int> moved = std::exchange(moved_, {});
  const int each = states.per_chain();
  for (int to = 0; to < chains_.z.cols(); ++to) {
    const int from = kept[static_cast<std::size_t>(to)];
    copy(all.z.column(from), chains_.z.column(to));
    copy(all.gradient.column(from), chains_.gradient.column(to));
    chains_.value[to] = all.value[from];
    moved_.push_back(moved[from]);
    copy(states.z.view().columns(from * each, (from + 1) * each).flat(),
         now_.z.view().columns(to * each, (to + 1) * each).flat());
    std::copy_n(states.log_p.begin() + from * each, each, now_.log_p.begin() + to * each);
    std::copy_n(states.moves.begin() + from * each, each, now_.moves.begin() + to * each);
  }
  pairs_ /= part;
  per_super_ /= part;
  result_.log_qt.resize(static_cast<std::size_t>(pairs_));
}

// One more round with one chain of `part`, or more states of this one. False where an evaluation threw Stopped: then
// all is as it was before.
bool DrawRefiner::go_on(int longer, int until, int part) {
  const Chains chains = chains_;
  const ChainChecks checks = result_.checks;
  const std::vector<PairsAt> at = result_.at;
  const std::vector<double> log_qt = result_.log_qt;
  const KernelTuning tuning = tuning_;
  const int taken = taken_, states = now_.per_chain(), first_kept = first_kept_, stride = stride_;
  const int pairs = pairs_, per_super = per_super_;
  const std::vector<int> moved = moved_;
  const ChainStates whole = part > 1 ? now_ : ChainStates();
  try {
    if (longer > 0) {
      extend(until);
    } else {
      adapt();
      if (part > 1) leave_out(part);
      run_round(until);
    }
    older_ = {};
  } catch (const Stopped&) {
    go_back(states);
    if (part > 1) now_ = whole;
    pairs_ = pairs;
    per_super_ = per_super;
    moved_ = moved;
    chains_ = chains;
    result_.checks = checks;
    result_.at = at;
    result_.log_qt = log_qt;
    tuning_ = tuning;
    taken_ = taken;
    first_kept_ = first_kept;
    stride_ = stride;
    return false;
  }
  judge_round();
  return true;
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
    const int part = affordable_part(until);
    if (part == 0 || !go_on(longer, until, part)) {
      result_.capped = true;
      break;
    }
  }
  if (result_.capped && pairs_ == 0) adapt();  // for whoever goes on
  finish();
  return std::move(result_);
}

}  // namespace

Matrix<double> independent_draws(const Family& family, int count, const RandomSource& random,
                                 std::vector<int>* component) {
  Draws draws(family.dimension(), family.components(), count);
  family.draw(random, assessment_iteration, draws);
  if (component) component->assign(count, 0);
  if (family.components() == 1) return std::move(draws.z);
  std::vector<double> uniform(count);
  random.uniforms({Purpose::proposal, assessment_iteration}, uniform);
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
