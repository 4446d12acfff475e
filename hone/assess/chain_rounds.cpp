#include "hone/assess/chain_rounds.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// Random streams of their own, beside those of independent_draws.
constexpr std::uint32_t walk_part = assessment_iteration + (1u << 24);

// Copies `count` states of a chain, with log p and moves, from a column of one block to a column of another.
void copy_states(const ChainStates& from, int begin, ChainStates& to, int at, int count) {
  copy(from.z.view().columns(begin, begin + count).flat(), to.z.view().columns(at, at + count).flat());
  std::copy_n(from.log_p.begin() + begin, count, to.log_p.begin() + at);
  std::copy_n(from.moves.begin() + begin, count, to.moves.begin() + at);
}

}  // namespace

ChainRounds::ChainRounds(const Target& target, const RefinedConfig& config, const RandomSource& random, Team& team,
                         Chains chains, int pairs, int per_super, std::function<void(double)> on_power)
    : target_(target),
      config_(config),
      random_(random),
      team_(team),
      on_power_(std::move(on_power)),
      place_{.chains = std::move(chains),
             .map = nullptr,
             .pairs = pairs,
             .per_super = per_super,
             .moved = {},
             .course = {}} {
  place_.moved.resize(static_cast<std::size_t>(place_.chains.z.cols()));
}

void ChainRounds::set_map(std::shared_ptr<const TransportMap> map) {
  transported_ = map ? std::make_unique<const TransportedTarget>(target_, *map) : nullptr;
  place_.map = std::move(map);
  shown_ = -1;
}

// Values and gradients follow from those that there are.
void ChainRounds::move_by(std::shared_ptr<const TransportMap> map) {
  Chains moved = chains();
  set_map(std::move(map));
  if (place_.map) {
    std::vector<double> e(static_cast<std::size_t>(moved.z.rows())), trace(place_.map->trace_size());
    for (int c = 0; c < moved.z.cols(); ++c) {
      copy(moved.z.column(c), e);
      moved.value[c] += place_.map->to_u(e, moved.z.column(c), trace);
      place_.map->pull_back(moved.z.column(c), trace, moved.gradient.column(c));
    }
  }
  place_.chains = std::move(moved);
}

const Chains& ChainRounds::chains() const {
  const Chains& chains = place_.chains;
  if (!place_.map) return chains;
  if (shown_ == place_.taken) return over_e_;
  over_e_ = chains;
  std::vector<double> trace(place_.map->trace_size());
  for (int c = 0; c < chains.z.cols(); ++c) {
    over_e_.value[c] -= place_.map->to_e(chains.z.column(c), over_e_.z.column(c), trace);
    place_.map->push_forward(chains.z.column(c), trace, over_e_.gradient.column(c));
  }
  shown_ = place_.taken;
  return over_e_;
}

// Memory for the states of `steps` steps, every stride-th of them.
ChainStates ChainRounds::room_for(int steps, int& stride) const {
  constexpr double most_numbers = 2e7, least_states = 8;  // of a chain: enough_per_chain effective ones must fit
  const int chains = place_.chains.z.cols(), d = place_.chains.z.rows();
  const double most = std::max(least_states * chains, std::min(2.0 * config_.draws, most_numbers / d));
  stride = std::max(1, static_cast<int>(std::ceil(static_cast<double>(chains) * steps / most)));
  ChainStates states(d, chains, std::max(1, steps / stride));
  if (config_.keep == Keep::gradients) states.gradient = Matrix<double>(d, states.count());
  return states;
}

void ChainRounds::record(ChainStates& block, int state) const {
  const int each = block.per_chain();
  if (state >= each) return;
  const Chains& chains = this->chains();
  for (int c = 0; c < chains.z.cols(); ++c) {
    const int column = c * each + state;
    copy(chains.z.column(c), block.z.column(column));
    block.log_p[static_cast<std::size_t>(column)] = chains.value[c];
    if (block.gradient.cols() > 0) copy(chains.gradient.column(c), block.gradient.column(column));
  }
}

// How the chains got to a state of `now_`. Momenta are made again from their random numbers.
void ChainRounds::record_moves(int state, const Kernel& kernel) {
  const int each = now_.per_chain();
  if (state >= each) return;
  const Chains& chains = place_.chains;
  std::vector<double> momentum(static_cast<std::size_t>(chains.z.rows()));
  for (int c = 0; c < chains.z.cols(); ++c) {
    StateMove& move = now_.moves[static_cast<std::size_t>(c * each + state)];
    move.acceptance = chains.acceptance[c];
    move.diverged = chains.outcome[c] != Outcome::outside && chains.acceptance[c] == 0;
    move.energy = std::nan("");
    if (!kernel.as_hmc()) continue;
    random_.normals(
        {Purpose::momentum, walk_part + static_cast<std::uint32_t>(place_.taken - 1), static_cast<std::uint32_t>(c), 0},
        momentum);
    move.energy = 0.5 * dot(momentum, momentum) - value_before_[static_cast<std::size_t>(c)];
  }
}

// The states of the second half are kept, and those of the quarter before it.
void ChainRounds::round(int until, const KernelTuning& tuning) {
  place_.first_kept = until / 2;
  if (place_.taken > 0) {
    older_ = std::move(before_);
    before_ = std::move(now_);
  } else {
    const int quarter = std::max(1, place_.first_kept - until / 4);
    before_ = room_for(quarter, place_.stride);
    walk(place_.first_kept - before_.per_chain() * place_.stride, tuning, nullptr);
    walk(place_.first_kept, tuning, &before_);
  }
  now_ = room_for(until - place_.first_kept, place_.stride);
  place_.course.acceptance = 0;
  place_.course.proposals = place_.course.divergences = 0;
  place_.course.log_p = {};
  walk(until, tuning, &now_);
}

void ChainRounds::extend(int longer, const KernelTuning& tuning) {
  const int old = now_.per_chain();
  ChainStates all(now_.z.rows(), now_.chains, old + longer);
  for (int c = 0; c < now_.chains; ++c) copy_states(now_, c * old, all, c * (old + longer), old);
  now_ = std::move(all);
  walk(place_.taken + longer * place_.stride, tuning, &now_);
}

// Goes on to `until` steps, and records every stride-th state of those after `first_kept`, or of the last ones.
void ChainRounds::walk(int until, const KernelTuning& tuning, ChainStates* block) {
  const Kernel& kernel = *tuning.kernel();
  Refiner refiner(kernel,
                  {.steps = 1, .adapt = Adapt::off, .step_size = tuning.step_size(), .acceptance = config_.acceptance},
                  team_);
  Chains& chains = place_.chains;
  Course& course = place_.course;
  const int first = block == &now_ ? place_.first_kept : place_.taken;
  const bool final = block == &now_ && config_.keep == Keep::points;
  while (place_.taken < until) {
    const bool due = block && (place_.taken + 1 - first) % place_.stride == 0;
    if (final && due) value_before_ = chains.value;
    const Refinement step = refiner.refine(target(), chains.view(), chains.z.cols(),
                                           walk_part + static_cast<std::uint32_t>(place_.taken++), random_);
    for (std::size_t c = 0; c < place_.moved.size(); ++c) place_.moved[c] += chains.outcome[c] == Outcome::accepted;
    for (int c = 0; c < place_.pairs; ++c) accepted_ += chains.acceptance[c] / place_.pairs;
    ++since_;
    if (due) record(*block, (place_.taken - first) / place_.stride - 1);
    if (due && block == &now_)
      for (const double value : chains.value) course.log_p.add(value);
    if (final && due) record_moves((place_.taken - first) / place_.stride - 1, kernel);
    if (block == &now_) {  // the mean over all its proposals
      const double all = static_cast<double>(course.proposals + step.proposals);
      if (all > 0)
        course.acceptance += (step.acceptance - course.acceptance) * static_cast<double>(step.proposals) / all;
      course.proposals += step.proposals;
      course.divergences += step.divergent;
    }
    if ((place_.taken & (place_.taken - 1)) != 0 && !(place_.taken == until && block == &now_)) continue;
    if (place_.pairs > 0) on_power_(accepted_ / since_);
    accepted_ = since_ = 0;
  }
  course.stuck = static_cast<double>(std::ranges::count(place_.moved, 0)) / static_cast<double>(place_.moved.size());
}

ChainRounds::Mark ChainRounds::mark(int part) const {
  return {place_, now_.per_chain(), part > 1 ? now_ : ChainStates()};
}

void ChainRounds::go_back(Mark mark) {
  place_ = std::move(mark.place);
  set_map(place_.map);
  if (older_.count() > 0) {
    now_ = std::move(before_);
    before_ = std::move(older_);
  } else {
    ChainStates kept(now_.z.rows(), now_.chains, mark.states);
    const int each = now_.per_chain();
    for (int c = 0; c < now_.chains; ++c) copy_states(now_, c * each, kept, c * mark.states, mark.states);
    now_ = std::move(kept);
  }
  if (mark.whole.count() > 0) now_ = std::move(mark.whole);
}

void ChainRounds::leave_out(int part) {
  const int pairs = place_.pairs, per_super = place_.per_super, d = place_.chains.z.rows();
  std::vector<int> kept;
  for (int c = 0; c < pairs / part; ++c) kept.push_back(c);
  for (int c = pairs; c < place_.chains.z.cols(); ++c)
    if ((c - pairs) % per_super < per_super / part) kept.push_back(c);
  const int count = static_cast<int>(kept.size());
  const Chains all = std::exchange(place_.chains, Chains(d, count));
  const ChainStates states = std::exchange(now_, ChainStates(d, count, now_.per_chain()));
  const std::vector<int> moved = std::exchange(place_.moved, {});
  const int each = states.per_chain();
  for (int to = 0; to < count; ++to) {
    const int from = kept[static_cast<std::size_t>(to)];
    copy(all.z.column(from), place_.chains.z.column(to));
    copy(all.gradient.column(from), place_.chains.gradient.column(to));
    place_.chains.value[to] = all.value[from];
    place_.moved.push_back(moved[from]);
    copy_states(states, from * each, now_, to * each, each);
  }
  place_.pairs /= part;
  place_.per_super /= part;
  shown_ = -1;
}

}  // namespace hone
