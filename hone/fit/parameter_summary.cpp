#include "hone/fit/parameter_summary.hpp"

#include <algorithm>
#include <cmath>

#include "hone/assess/pareto.hpp"
#include "hone/base/format.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

// The rows of a table, several at a time: one alone would fetch every cache line of the table.
class Rows {
 public:
  explicit Rows(const Matrix<double>& table) : table_(table), rows_(table.cols(), at_once) {}
  std::span<const double> operator[](std::size_t k) {
    const int row = static_cast<int>(k);
    if (row < first_ || row >= first_ + at_once || first_ < 0) fetch(row);
    return rows_.column(row - first_);
  }

 private:
  static constexpr int at_once = 8;
  void fetch(int first) {
    first_ = first;
    const int count = std::min(at_once, table_.rows() - first);
    for (int i = 0; i < table_.cols(); ++i)
      for (int k = 0; k < count; ++k) rows_(i, k) = table_(first + k, i);
  }

  const Matrix<double>& table_;
  Matrix<double> rows_;  // (columns of the table, at_once)
  int first_ = -1;
};

// The values that a summary is made of.
struct Values {
  Rows weighted, refined, q, before;  // draws of q with weights, refined ones, independent draws of q, earlier states
};

// The summary of value k, by the refined draws.
ParameterSummary summary_of(const CheckedFit& fit, const std::string& name, std::size_t k, Values& all) {
  const int chains = fit.refined.states.chains;
  ParameterSummary s{};
  s.name = name;
  s.is_mean = s.is_sd = std::nan("");
  Moments q, refined;
  const std::span<const double> of_q = all.weighted[k], values = all.refined[k];
  for (const double x : all.q[k]) q.add(x);
  for (const double x : values) refined.add(x);
  s.q_mean = q.mean();
  s.q_sd = q.sd();
  s.mean = refined.mean();
  s.sd = refined.sd();
  if (!std::isfinite(s.mean)) {
    s.mcse = s.sd_mcse = s.effective = s.tail_effective = s.q05 = s.q50 = s.q95 = s.mean;
  } else {
    s.mcse = mean_over_chains(values, chains).se;
    s.effective = effective_draws(values.size(), refined.variance(), s.mcse);
    s.sd_mcse = sd_over_chains(values, chains).se;
    // What the mean moved since the states before, beyond two standard errors: a bias that may remain.
    const std::vector<double> now = means_of_chains(values, chains), before = means_of_chains(all.before[k], chains);
    Moments change;
    for (std::size_t c = 0; c < now.size(); ++c) change.add(now[c] - before[c]);
    const Estimate moved = change.estimate();
    if (std::isfinite(moved.mean)) s.mcse = std::hypot(s.mcse, std::max(0.0, std::abs(moved.mean) - 2 * moved.se));
    std::vector<double> sorted(values.begin(), values.end());
    s.q05 = quantile_of(sorted, 0.05);
    s.q50 = quantile_of(sorted, 0.5);
    s.q95 = quantile_of(sorted, 0.95);
    s.tail_effective =
        std::min(effective_draws_below(values, chains, s.q05), effective_draws_below(values, chains, s.q95));
  }
  if (fit.weights.k_hat < 0.7) {
    double first = 0, second = 0;
    for (std::size_t i = 0; i < of_q.size(); ++i) first += std::exp(fit.weights.log_weight[i]) * of_q[i];
    for (std::size_t i = 0; i < of_q.size(); ++i)
      second += std::exp(fit.weights.log_weight[i]) * square(of_q[i] - first);
    s.is_mean = first;
    s.is_sd = std::sqrt(second);
  }
  return s;
}

// The relative error of a standard deviation of n draws, from the fourth moment: heavy tails make it large.
double sd_error(std::span<const double> values, double mean, double sd, double n) {
  double fourth = 0;
  for (const double x : values) fourth += square(square((x - mean) / sd)) / static_cast<double>(values.size());
  return std::sqrt((fourth - 1) / (4 * n));
}

}  // namespace

void summarize(const Posterior& posterior, const Matrix<double>& natural_of_q, const Matrix<double>& natural_before,
               CheckedFit& fit) {
  Values values{Rows(fit.natural_q), Rows(fit.natural_refined), Rows(natural_of_q), Rows(natural_before)};
  for (std::size_t k = 0; k < posterior.names().size(); ++k)
    fit.parameters.push_back(summary_of(fit, posterior.names()[k], k, values));
}

NaturalChecks natural_checks(const CheckedFit& fit, const Matrix<double>& natural_of_q) {
  NaturalChecks worst;
  const double n0 = natural_of_q.cols();
  Rows of_q(natural_of_q), refined(fit.natural_refined);
  for (std::size_t k = 0; k < fit.parameter_count; ++k) {
    const ParameterSummary& s = fit.parameters[k];
    if (!(s.sd > 0) || !(s.q_sd > 0)) continue;  // constant, or not finite
    const double shift = std::abs(s.q_mean - s.mean) / s.sd, ratio = s.q_sd / s.sd;
    if (shift > worst.shift) {
      worst.shift = shift;
      worst.shift_se = std::hypot(s.mcse / s.sd, ratio / std::sqrt(n0));
      worst.shift_name = s.name;
    }
    const std::span<const double> own = refined[k];
    if (const double index = tail_index({own.begin(), own.end()}, worst.tail_index); index > worst.tail_index) {
      worst.tail_index = index;
      worst.tail_name = s.name;
    }
    if (std::abs(std::log(ratio)) <= std::abs(std::log(worst.sd_ratio))) continue;
    worst.sd_ratio = ratio;
    worst.sd_ratio_se = std::hypot(sd_error(of_q[k], s.q_mean, s.q_sd, n0), s.sd_mcse / s.sd);
    worst.sd_name = s.name;
  }
  return worst;
}

std::string not_finite(const Matrix<double>& values, const std::vector<std::string>& names, const std::string& whose) {
  constexpr int most_named = 3;
  std::string named;
  int count = 0;
  for (int k = 0; k < values.rows(); ++k) {
    int draws = 0;
    for (int i = 0; i < values.cols(); ++i) draws += !std::isfinite(values(k, i));
    if (draws == 0 || ++count > most_named) continue;
    const std::string where =
        draws == values.cols() ? "every draw" : detail::format("{:.3g} % of {}", 100.0 * draws / values.cols(), whose);
    named += detail::format("{}{} (at {})", named.empty() ? "" : ", ", names[static_cast<std::size_t>(k)], where);
  }
  if (count > most_named) named += detail::format(", and {} more", count - most_named);
  if (count == 0) return {};
  return "values that are not finite: " + named +
         ". The table has no figures for them, and the verdict leaves them out";
}

}  // namespace hone
