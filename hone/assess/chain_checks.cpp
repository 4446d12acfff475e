#include "hone/assess/chain_checks.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hone/assess/nested_rhat.hpp"
#include "hone/assess/pareto.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// One coordinate's values, chain after chain; k = −1: log p
std::vector<double> values_of(const ChainStates& states, int k) {
  if (k < 0) return states.log_p;
  std::vector<double> values(static_cast<std::size_t>(states.count()));
  for (int i = 0; i < states.count(); ++i) values[static_cast<std::size_t>(i)] = states.z(k, i);
  return values;
}

// How far the mean of h moved from `before` to `now`, in standard errors, chain by chain.
template <class H>
double moved(const std::vector<double>& before, const std::vector<double>& now, int chains, H&& h) {
  std::vector<double> first(before.size()), second(now.size());
  std::ranges::transform(before, first.begin(), h);
  std::ranges::transform(now, second.begin(), h);
  first = means_of_chains(first, chains);
  second = means_of_chains(second, chains);
  Moments change;
  for (std::size_t c = 0; c < first.size(); ++c) change.add(second[c] - first[c]);
  const Estimate e = change.estimate();
  return e.se > 0 ? std::abs(e.mean) / e.se : 0;
}

// What a normal deviate of z is among those of Student's t (Wallace 1959).
double as_student(double z, double freedom) {
  const double scaled = z * (8 * freedom + 3) / (8 * freedom + 1);
  return std::sqrt(freedom * std::expm1(scaled * scaled / freedom));
}

// The component of q that each state is most likely of.
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

// The values about the means of the components that they belong to.
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
  for (int k = -1; k < states.z.rows(); ++k) {
    const std::vector<double> values = values_of(states, k);
    double beyond = 0, freedom = 0;  // Σ over modes of R̂² − 1, by their numbers of super-chains less one
    for (int m = 0; m < modes; ++m) {
      std::vector<Moments> chains;
      for (int c = first; c < states.chains; ++c) {
        if (mode[static_cast<std::size_t>((c - first) / per_super)] != m) continue;
        Moments& own = chains.emplace_back();
        for (int s = 0; s < each; ++s) own.add(values[static_cast<std::size_t>(c * each + s)]);
      }
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
    if (!(rhat > checks.nested_rhat)) continue;
    checks.nested_rhat = rhat;
    checks.rhat_coordinate = k;
  }
}

void judge_moments(const ChainStates& before, const ChainStates& now, ChainChecks& checks) {
  const int d = now.z.rows();
  constexpr double chance = 0.02;  // that any of the changes exceeds the limit, if there are none
  checks.drift_limit = as_student(std::sqrt(2 * std::log((4.0 * d + 2) / chance)), now.chains - 1);
  checks.drift = 0;
  checks.effective = checks.tail_effective = infinity;
  checks.tail_index = 0;
  double slowest = infinity;  // effective draws of what mixes worst: coordinates, their squares, log p
  for (int k = -1; k < d; ++k) {
    const std::vector<double> now_values = values_of(now, k), before_values = values_of(before, k);
    Moments all;
    for (const double x : now_values) all.add(x);
    if (k < 0) checks.bfmi = d / (0.5 * d + all.variance());
    const auto look = [&](auto&& h) {
      const double drift = moved(before_values, now_values, now.chains, h);
      if (!(drift > checks.drift)) return;
      checks.drift = drift;
      checks.drift_coordinate = k;
    };
    look([](double x) { return x; });
    const double own = effective_draws(now_values, now.chains);
    slowest = std::min(slowest, own);
    if (k < 0) continue;
    look([m = all.mean()](double x) { return square(x - m); });
    checks.effective = std::min(checks.effective, own);
    std::vector<double> squares = now_values;
    for (double& x : squares) x = square(x - all.mean());
    slowest = std::min(slowest, effective_draws(squares, now.chains));
    constexpr int most_tails = 1000;
    if (const double index = d <= most_tails ? tail_index(now_values) : 0; index > checks.tail_index) {
      checks.tail_index = index;
      checks.tail_coordinate = k;
    }
    std::vector<double> sorted = now_values;
    for (const double p : {0.05, 0.95}) {
      const double at = quantile_of(sorted, p);
      look([at](double x) { return x < at ? 1.0 : 0.0; });
      checks.tail_effective = std::min(checks.tail_effective, effective_draws_below(now_values, now.chains, at));
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
  const int each = states.per_chain(), supers = states.chains / per_super;
  if (supers < 2) return result;
  const int first = states.chains - supers * per_super;
  for (int k = 0; k < values.rows(); ++k) {
    std::vector<Moments> chains(static_cast<std::size_t>(supers * per_super));
    for (int i = first * each; i < values.cols(); ++i)
      chains[static_cast<std::size_t>(i / each - first)].add(values(k, i));
    const NestedVariances variances = nested_variances(chains, per_super);
    if (std::isfinite(variances.within))
      result[static_cast<std::size_t>(k)] = std::sqrt(1 + std::max(0.0, variances.excess()));
  }
  return result;
}

LargestErrors largest_errors(MatrixView<const double> values, int chains, int parameters) {
  LargestErrors result;
  std::vector<double> row(static_cast<std::size_t>(values.cols()));
  for (int k = 0; k < values.rows(); ++k) {
    Moments all;
    for (int i = 0; i < values.cols(); ++i) all.add(row[static_cast<std::size_t>(i)] = values(k, i));
    if (!(all.sd() > 0) || !std::isfinite(all.sd())) continue;
    result.mean = std::max(result.mean, mean_over_chains(row, chains).se / all.sd());
    if (k >= parameters) continue;
    const double sd = sd_over_chains(row, chains).se / all.sd();
    if (!(sd > result.sd) || !(tail_index(row) < slow_sd)) continue;
    result.sd = sd;
    result.sd_value = k;
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
