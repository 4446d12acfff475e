#include "hone/assess/chain_checks.hpp"

#include <algorithm>
#include <cmath>

#include "hone/assess/nested_rhat.hpp"
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

}  // namespace

void judge_starts(const ChainStates& states, int first, int per_super, std::span<const int> mode, ChainChecks& checks) {
  const int each = states.per_chain(), modes = 1 + *std::ranges::max_element(mode);
  checks.super_chains = static_cast<int>(mode.size());
  checks.nested_rhat = checks.spread = 0;
  for (int k = -1; k < states.z.rows(); ++k) {
    const std::vector<double> values = values_of(states, k);
    for (int m = 0; m < modes; ++m) {
      std::vector<Moments> chains;
      for (int c = first; c < states.chains; ++c) {
        if (mode[static_cast<std::size_t>((c - first) / per_super)] != m) continue;
        Moments& own = chains.emplace_back();
        for (int s = 0; s < each; ++s) own.add(values[static_cast<std::size_t>(c * each + s)]);
      }
      if (chains.empty()) continue;
      const NestedVariances variances = nested_variances(chains, per_super);
      checks.spread = std::max(checks.spread, variances.chance > 0 ? variances.between / variances.chance : 0);
      checks.spread_limit = most_spread(variances.super_chains, (states.z.rows() + 1) * modes);
      if (!(variances.excess() > checks.nested_rhat)) continue;
      checks.nested_rhat = variances.excess();
      checks.rhat_coordinate = k;
    }
  }
}

void judge_moments(const ChainStates& before, const ChainStates& now, ChainChecks& checks) {
  const int d = now.z.rows();
  constexpr double chance = 0.02;  // that any of the changes exceeds the limit, if there are none
  checks.drift_limit = std::sqrt(2 * std::log((4.0 * d + 2) / chance));
  checks.drift = 0;
  checks.effective = checks.tail_effective = infinity;
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
    std::vector<double> sorted = now_values;
    for (const double p : {0.05, 0.95}) {
      const double at = quantile_of(sorted, p);
      look([at](double x) { return x < at ? 1.0 : 0.0; });
      checks.tail_effective = std::min(checks.tail_effective, effective_draws_below(now_values, now.chains, at));
    }
  }
  checks.per_chain = slowest / now.chains;
}

double largest_error(MatrixView<const double> values, int chains) {
  double result = 0;
  std::vector<double> row(static_cast<std::size_t>(values.cols()));
  for (int k = 0; k < values.rows(); ++k) {
    Moments all;
    for (int i = 0; i < values.cols(); ++i) all.add(row[static_cast<std::size_t>(i)] = values(k, i));
    if (!(all.sd() > 0) || !std::isfinite(all.sd())) continue;
    result = std::max(result, mean_over_chains(row, chains).se / all.sd());
  }
  return result;
}

ChainStates some_chains(const ChainStates& states, int first, int chains) {
  const int each = states.per_chain();
  ChainStates result(states.z.rows(), chains, each);
  copy(states.z.view().columns(first * each, (first + chains) * each).flat(), result.z.view().flat());
  std::copy_n(states.log_p.begin() + first * each, chains * each, result.log_p.begin());
  return result;
}

}  // namespace hone
