#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "hone/assess/refined_draws.hpp"
#include "hone/assess/selection.hpp"
#include "hone/base/scalar.hpp"

namespace hone {

std::vector<double> means_of_chains(std::span<const double> values, int chains) {
  const auto count = static_cast<std::size_t>(chains);
  if (chains < 2 || values.size() % count != 0 || values.empty())
    throw std::logic_error("an error between chains needs at least two chains of one length");
  const std::size_t each = values.size() / count;
  std::vector<double> means(count);
  for (std::size_t c = 0; c < count; ++c) {
    for (const double x : values.subspan(c * each, each)) means[c] += x;
    means[c] /= static_cast<double>(each);
  }
  return means;
}

Estimate mean_over_chains(std::span<const double> values, int chains) {
  Moments moments;
  for (const double mean : means_of_chains(values, chains)) moments.add(mean);
  return moments.estimate();
}

Estimate sd_over_chains(std::span<const double> values, int chains) {
  Moments all;
  for (const double x : values) all.add(x);
  std::vector<double> squares(values.begin(), values.end());
  for (double& x : squares) x = square(x - all.mean());
  const double se = mean_over_chains(squares, chains).se;
  return {all.sd(), all.sd() > 0 ? se / (2 * all.sd()) : 0};
}

double effective_draws(std::size_t count, double variance, double se) {
  const double n = static_cast<double>(count);
  if (!(variance > 0)) return n;
  const double most = n * std::max(1.0, std::log10(n));
  return se > 0 ? std::min(most, variance / square(se)) : most;
}

double effective_draws(std::span<const double> values, int chains) {
  Moments all;
  for (const double x : values) all.add(x);
  return effective_draws(values.size(), all.variance(), mean_over_chains(values, chains).se);
}

double quantile_of(std::span<double> values, double p) {
  const double at = p * (static_cast<double>(values.size()) - 1);
  const auto rank = static_cast<std::size_t>(at);
  double low = 0, next = 0;
  if (2 * rank < values.size() && rank + 1 < values.size()) {  // the other of the two is looked for on the shorter side
    select(values, rank + 1);
    low = *std::ranges::max_element(values.first(rank + 1));
    next = values[rank + 1];
  } else {
    select(values, rank);
    low = values[rank];
    next = rank + 1 < values.size() ? *std::ranges::min_element(values.subspan(rank + 1)) : low;
  }
  return low + (at - std::floor(at)) * (next - low);
}

double effective_draws_below(std::span<const double> values, int chains, double threshold) {
  std::vector<double> below(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) below[i] = values[i] < threshold;
  return effective_draws(below, chains);
}

}  // namespace hone
