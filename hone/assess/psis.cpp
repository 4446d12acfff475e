#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/assess/importance.hpp"
#include "hone/assess/pareto.hpp"
#include "hone/assess/selection.hpp"
#include "hone/base/scalar.hpp"

namespace hone {

namespace {

// The fit, with `log_product(b)` for Σ log(1 − b x).
template <class LogProduct>
Pareto fit_by(std::span<const double> x, LogProduct&& log_product) {
  const auto n = static_cast<double>(x.size());
  const int grid = 30 + static_cast<int>(std::sqrt(n));
  const double quartile = x[static_cast<std::size_t>(std::floor(n / 4 + 0.5)) - 1];
  std::vector<double> theta(grid), log_likelihood(grid);
  const auto shape_at = [&](double b) { return log_product(b) / n; };  // the maximum-likelihood k for θ = −k/σ
  for (int j = 0; j < grid; ++j) {
    theta[j] = 1 / x.back() + (1 - std::sqrt(grid / (j + 0.5))) / (3 * quartile);
    const double k = shape_at(theta[j]);
    log_likelihood[j] = n * (std::log(-theta[j] / k) - k - 1);
  }
  const double total = log_sum_exp(log_likelihood);
  double b = 0;  // the posterior mean of θ over the grid
  for (int j = 0; j < grid; ++j) b += theta[j] * std::exp(log_likelihood[j] - total);
  const double k = shape_at(b);
  constexpr double prior_weight = 10;  // worth this many values at k = ½
  return {(n * k + prior_weight * 0.5) / (n + prior_weight), -k / b};
}

// The same k except for rounding, by one logarithm per eight values; x.back() is at most 10¹² times the lowest quarter.
double rough_shape(std::span<const double> x) {
  constexpr std::size_t together = 8;
  const std::size_t whole = x.size() / together;
  return fit_by(x,
                [&](double b) {
                  double sum = 0;
                  for (std::size_t i = 0; i < whole; ++i) {
                    double product = 1;
                    for (std::size_t k = 0; k < together; ++k) product *= 1 - b * x[k * whole + i];
                    sum += std::log(product);
                  }
                  for (const double value : x.subspan(together * whole)) sum += std::log1p(-b * value);
                  return sum;
                })
      .k;
}

}  // namespace

Pareto fit_pareto(std::span<const double> x) {
  return fit_by(x, [x](double b) {
    double sum = 0;
    for (const double value : x) sum += std::log1p(-b * value);
    return sum;
  });
}

Psis smooth_weights(std::span<const double> log_ratio) {
  const auto n = log_ratio.size();
  Psis result{infinity, {log_ratio.begin(), log_ratio.end()}, 0};
  std::vector<double>& weight = result.log_weight;
  const double top = n == 0 ? -infinity : *std::ranges::max_element(weight);
  if (!std::isfinite(top)) return result;
  for (double& w : weight) w -= top;

  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return weight[a] < weight[b]; });
  const auto tail = static_cast<std::size_t>(
      std::ceil(std::min(0.2 * static_cast<double>(n), 3 * std::sqrt(static_cast<double>(n)))));
  // No weight is more than a tenth above the mean, so the tail does no harm, whatever its shape.
  const bool even = std::exp(log_sum_exp(weight)) * 1.1 > static_cast<double>(n);
  if (tail >= 5 && tail < n) {
    const double cutoff = weight[order[n - tail - 1]];
    std::vector<double> excess;
    for (std::size_t i = n - tail; i < n; ++i) excess.push_back(std::exp(weight[order[i]]) - std::exp(cutoff));
    if (cutoff == -infinity || excess.back() <= 0) {
      // Either there are fewer finite weights than the tail needs, or the largest are equal: q = p.
      if (cutoff != -infinity) result.k_hat = -infinity;
    } else {
      for (double& x : excess) x = std::max(x, 1e-300);
      const Pareto fit = fit_pareto(excess);
      result.k_hat = even ? -infinity : fit.k;
      for (std::size_t i = 0; i < tail; ++i) {
        const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(tail);
        const double quantile = std::abs(fit.k) < 1e-12 ? -fit.sigma * std::log1p(-p)
                                                        : fit.sigma * std::expm1(-fit.k * std::log1p(-p)) / fit.k;
        weight[order[n - tail + i]] = std::min(0.0, std::log(std::exp(cutoff) + quantile));
      }
    }
  }
  const double total = log_sum_exp(weight);
  double squares = 0;
  for (double& w : weight) {
    w -= total;
    squares += std::exp(2 * w);
  }
  result.effective_draws = 1 / squares;
  return result;
}

double tail_index(std::vector<double> values, double least) {
  const auto tail = static_cast<std::size_t>(3 * std::sqrt(static_cast<double>(values.size())));
  if (2 * tail >= values.size() || tail < 20) return 0;
  constexpr double rounding = 1e-6;
  double k = 0;
  for (int side = 0; side < 2; ++side) {
    const auto first = values.end() - static_cast<std::ptrdiff_t>(tail) - 1;
    select(values, values.size() - tail - 1);
    std::sort(first, values.end());
    std::vector<double> excess;
    for (auto x = first + 1; x < values.end(); ++x) excess.push_back(std::max(1e-300, *x - *first));
    if (std::isfinite(excess.back()) && excess[excess.size() / 4] > 1e-12 * excess.back())
      if (const double rough = rough_shape(excess); !(rough < std::max(k, least) - rounding))
        k = std::max(k, fit_pareto(excess).k);
    for (double& x : values) x = -x;
  }
  return k;
}

double ModeMasses::apart() const {
  double most = 0;
  for (std::size_t k = 0; k < mass.size(); ++k) most = std::max(most, std::abs(mass[k] - weight[k]));
  return most;
}

ModeMasses mode_masses(const Psis& weights, std::span<const int> component, int components) {
  ModeMasses result{std::vector<double>(components), std::vector<double>(components), weights.k_hat};
  for (std::size_t i = 0; i < component.size(); ++i) {
    result.mass[component[i]] += std::exp(weights.log_weight[i]);
    result.weight[component[i]] += 1.0 / static_cast<double>(component.size());
  }
  return result;
}

}  // namespace hone
