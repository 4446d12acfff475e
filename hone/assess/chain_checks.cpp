#include "hone/assess/chain_checks.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hone/assess/lanes.hpp"
#include "hone/assess/nested_rhat.hpp"
#include "hone/assess/pareto.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// The moments of every series in each of the chains from `first` on.
std::vector<std::vector<Moments>> moments_of_chains(const LaneBlock& block, int chains, int first) {
  const int each = block.length() / chains;
  std::vector<std::vector<Moments>> result(lane_count);
  for (int c = first; c < chains; ++c) {
    const LaneMoments own = moments_of(block, c * each, (c + 1) * each);
    for (int l = 0; l < lane_count; ++l) result[static_cast<std::size_t>(l)].push_back(own.of(l));
  }
  return result;
}

// How far each mean moved from `before` to `now`, in standard errors, by the means of the same chains.
Lanes moved(const LaneBlock& before, const LaneBlock& now) {
  const LaneMoments change = moments_of(now.minus(before));
  Lanes result{};
  for (int l = 0; l < lane_count; ++l) {
    const Estimate e = change.of(l).estimate();
    result[l] = e.se > 0 ? std::abs(e.mean) / e.se : 0;
  }
  return result;
}

// The effective draws of values with these moments, whose chains have these means.
Lanes effective_lanes(const LaneMoments& values, const LaneBlock& means) {
  const LaneMoments between = moments_of(means);
  Lanes result{};
  for (int l = 0; l < lane_count; ++l)
    result[l] = effective_draws(values.count, values.of(l).variance(), between.of(l).estimate().se);
  return result;
}

// The chains' evidence on eight coordinates: how far the means of x, (x − mean)² and of being in a tail moved, and the
// effective draws for each.
struct Shown {
  static constexpr int quantities = 4;
  Lanes drift[quantities], effective[quantities];
};

Shown show(const LaneBlock& before, const LaneBlock& now, int chains, const Lanes (&tails)[2], const LaneMoments& all) {
  Shown shown{};
  const auto look = [&](int quantity, const LaneBlock& first, const LaneBlock& second, const LaneMoments& moments) {
    const LaneBlock means = second.means_of_chains(chains);
    shown.drift[quantity] = moved(first.means_of_chains(chains), means);
    shown.effective[quantity] = effective_lanes(moments, means);
  };
  look(0, before, now, all);
  const LaneBlock squares = now.squares_about(all.mean);
  look(1, before.squares_about(all.mean), squares, moments_of(squares));
  for (int side = 0; side < 2; ++side) {
    const LaneBlock below = now.below(tails[side]);
    look(2 + side, before.below(tails[side]), below, moments_of(below));
  }
  return shown;
}

// The quantile of Student's t at the probability that z has under a normal law (Wallace 1959).
double as_student(double z, double freedom) {
  const double scaled = z * (8 * freedom + 3) / (8 * freedom + 1);
  return std::sqrt(freedom * std::expm1(scaled * scaled / freedom));
}

// The component of q that most likely made each state.
std::vector<int> nearest_components(const Family& family, const ChainStates& block) {
  const int d = family.dimension();
  std::vector<int> nearest(static_cast<std::size_t>(block.count()));
  std::vector<double> best(nearest.size(), -infinity), log_weight(family.components()), e(d);
  family.log_weights(log_weight);
  for (int k = 0; k < family.components(); ++k) {
    const std::optional<Normal> normal = family.component(k);
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

// The values minus the means of their components.
void centre_by_component(std::span<const int> component, int components, std::vector<double>& values) {
  if (components == 1) return;
  std::vector<Moments> moments(components);
  for (std::size_t i = 0; i < values.size(); ++i) moments[component[i]].add(values[i]);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= moments[component[i]].mean();
}

}  // namespace

bool misses_tail(const ChainChecks& checks) { return checks.tail_index > heavy_tail && checks.burn_in < long_burn_in; }

bool arrived(const ChainChecks& checks) {
  return checks.nested_rhat < most_rhat && checks.spread <= checks.spread_limit && checks.drift <= checks.drift_limit &&
         checks.memory <= checks.memory_limit && checks.stuck <= most_stuck && !misses_tail(checks) &&
         static_cast<double>(checks.divergences) <= most_divergent * static_cast<double>(checks.proposals);
}

void judge_starts(const ChainStates& states, int first, int per_super, std::span<const int> mode, ChainChecks& checks) {
  const int each = states.per_chain(), modes = 1 + *std::ranges::max_element(mode);
  checks.super_chains = static_cast<int>(mode.size());
  checks.nested_rhat = checks.spread = 0;
  std::vector<double> limit;  // of the spread, by mode
  for (int m = 0; m < modes; ++m)
    limit.push_back(
        most_spread(static_cast<int>(std::ranges::count(mode, m)), per_super, (states.z.rows() + 1) * modes));
  double farthest = -1;  // spread / limit
  const auto judge = [&](int k, std::span<const Moments> of_chains) {
    double beyond = 0, freedom = 0;  // Σ over modes of R̂² − 1, by their numbers of super-chains less one
    for (int m = 0; m < modes; ++m) {
      std::vector<Moments> chains;
      for (int c = first; c < states.chains; ++c)
        if (mode[static_cast<std::size_t>((c - first) / per_super)] == m)
          chains.push_back(of_chains[static_cast<std::size_t>(c - first)]);
      if (chains.empty()) continue;
      const NestedVariances variances = nested_variances(chains, per_super);
      const double spread = variances.chance > 0 ? variances.between / variances.chance : 0;
      if (const double far = spread / limit[static_cast<std::size_t>(m)]; far > farthest) {
        farthest = far;
        checks.spread = spread;
        checks.spread_limit = limit[static_cast<std::size_t>(m)];
      }
      const double own = variances.super_chains - 1;
      beyond += own * variances.excess();
      freedom += own;
    }
    const double rhat = std::sqrt(std::max(1.0, 1 + beyond / freedom));
    if (!(rhat > checks.nested_rhat)) return;
    checks.nested_rhat = rhat;
    checks.rhat_coordinate = k;
  };
  std::vector<Moments> of_log_p;
  for (int c = first; c < states.chains; ++c) {
    Moments& own = of_log_p.emplace_back();
    for (int s = 0; s < each; ++s) own.add(states.log_p[static_cast<std::size_t>(c * each + s)]);
  }
  judge(-1, of_log_p);
  for (int k = 0; k < states.z.rows(); k += lane_count) {
    const std::vector<std::vector<Moments>> chains = moments_of_chains(LaneBlock(states.z, k), states.chains, first);
    for (int l = 0; l < std::min(lane_count, states.z.rows() - k); ++l)
      judge(k + l, chains[static_cast<std::size_t>(l)]);
  }
}

void judge_moments(const ChainStates& before, const ChainStates& now, ChainChecks& checks) {
  const int d = now.z.rows();
  constexpr double chance = 0.02;  // that any of the changes exceeds the limit, if there are none
  checks.drift_limit = as_student(std::sqrt(2 * std::log((4.0 * d + 2) / chance)), now.chains - 1);
  checks.drift = 0;
  checks.effective = checks.tail_effective = infinity;
  checks.tail_index = 0;
  const auto drifts = [&](double drift, int k) {
    if (!(drift > checks.drift)) return;
    checks.drift = drift;
    checks.drift_coordinate = k;
  };
  Moments log_p, change;
  for (const double x : now.log_p) log_p.add(x);
  checks.bfmi = d / (0.5 * d + log_p.variance());
  const std::vector<double> first = means_of_chains(before.log_p, now.chains),
                            second = means_of_chains(now.log_p, now.chains);
  for (std::size_t c = 0; c < first.size(); ++c) change.add(second[c] - first[c]);
  if (const Estimate e = change.estimate(); e.se > 0) drifts(std::abs(e.mean) / e.se, -1);
  double slowest = effective_draws(now.log_p, now.chains);  // of what mixes worst: coordinates, their squares, log p
  for (int k = 0; k < d; k += lane_count) {
    const LaneBlock now_block(now.z, k);
    const int there = std::min(lane_count, d - k);
    Lanes tails[2] = {};
    for (int l = 0; l < there; ++l) {
      std::vector<double> values = now_block.series(l);
      const double index = d <= most_tail_dimensions ? tail_index(values, checks.tail_index) : 0;
      if (index > checks.tail_index) {
        checks.tail_index = index;
        checks.tail_coordinate = k + l;
      }
      for (const int side : {0, 1})
        tails[side][static_cast<std::size_t>(l)] = quantile_of(values, side == 0 ? 0.05 : 0.95);
    }
    const Shown shown = show(LaneBlock(before.z, k), now_block, now.chains, tails, moments_of(now_block));
    for (int l = 0; l < there; ++l) {
      for (const Lanes& drift : shown.drift) drifts(drift[l], k + l);
      checks.effective = std::min(checks.effective, shown.effective[0][l]);
      slowest = std::min({slowest, shown.effective[0][l], shown.effective[1][l]});
      checks.tail_effective = std::min({checks.tail_effective, shown.effective[2][l], shown.effective[3][l]});
    }
  }
  checks.per_chain = slowest / now.chains;
}

void judge_within_modes(const Family& family, ChainStates before, ChainStates now, int pairs, int per_super,
                        std::span<const int> mode, ChainChecks& checks) {
  const int d = family.dimension();
  std::vector<std::vector<Moments>> moments(family.components(), std::vector<Moments>(d + 1));
  const std::vector<int> of_now = nearest_components(family, now), of_before = nearest_components(family, before);
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
  judge_starts(now, pairs, per_super, mode, checks);
  judge_moments(some_chains(before, 0, pairs), some_chains(now, 0, pairs), checks);
}

void judge_memory(const Pairs& pairs, ChainChecks& checks) {
  const int d = pairs.z0.rows();
  checks.memory = 0;
  // Fisher's z: atanh r is about normal, with variance 1 / (n − 3), and one less for each further mean taken off.
  const double freedom = std::max(1, pairs.count - pairs.components - 2);
  checks.memory_limit = std::tanh(std::atanh(most_memory) + std::sqrt(2 * std::log((d + 1.0) / 0.02) / freedom));
  std::vector<double> before(pairs.count), after(pairs.count);
  for (int k = -1; k < d; ++k) {
    for (int i = 0; i < pairs.count; ++i) {
      before[i] = k < 0 ? pairs.log_p0[i] : pairs.z0(k, i);
      after[i] = k < 0 ? pairs.log_pt[i] : pairs.zt(k, i);
    }
    centre_by_component(pairs.component, pairs.components, before);
    centre_by_component(pairs.component, pairs.components, after);
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

std::vector<double> value_rhats(MatrixView<const double> values, const ChainStates& states, int per_super) {
  std::vector<double> result(static_cast<std::size_t>(values.rows()), std::nan(""));
  const int supers = states.chains / per_super;
  if (supers < 2) return result;
  const int first = states.chains - supers * per_super;
  for (int k = 0; k < values.rows(); k += lane_count) {
    const std::vector<std::vector<Moments>> chains = moments_of_chains(LaneBlock(values, k), states.chains, first);
    for (int l = 0; l < std::min(lane_count, values.rows() - k); ++l) {
      const NestedVariances variances = nested_variances(chains[static_cast<std::size_t>(l)], per_super);
      if (std::isfinite(variances.within))
        result[static_cast<std::size_t>(k + l)] = std::sqrt(1 + std::max(0.0, variances.excess()));
    }
  }
  return result;
}

LargestErrors largest_errors(MatrixView<const double> values, int chains, int parameters) {
  LargestErrors result;
  for (int first = 0; first < values.rows(); first += lane_count) {
    const LaneBlock block(values, first);
    const LaneMoments all = moments_of(block);
    const LaneMoments means = moments_of(block.means_of_chains(chains)),
                      squares = moments_of(block.squares_about(all.mean).means_of_chains(chains));
    for (int l = 0; l < std::min(lane_count, values.rows() - first); ++l) {
      const double sd = all.of(l).sd();
      if (!(sd > 0) || !std::isfinite(sd)) continue;
      result.mean = std::max(result.mean, means.of(l).estimate().se / sd);
      if (first + l >= parameters) continue;
      const double error = squares.of(l).estimate().se / (2 * sd) / sd;  // as sd_over_chains has it
      if (!(error > result.sd) || !(tail_index(block.series(l), slow_sd) < slow_sd)) continue;
      result.sd = error;
      result.sd_value = first + l;
    }
  }
  return result;
}

ChainStates some_chains(const ChainStates& states, int first, int chains) {
  const int each = states.per_chain();
  ChainStates result(states.z.rows(), chains, each);
  copy(states.z.view().columns(first * each, (first + chains) * each).flat(), result.z.view().flat());
  std::copy_n(states.log_p.begin() + first * each, chains * each, result.log_p.begin());
  std::copy_n(states.moves.begin() + first * each, chains * each, result.moves.begin());
  return result;
}

}  // namespace hone
