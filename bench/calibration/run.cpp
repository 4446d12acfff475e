#include "bench/calibration/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <sstream>

#include "hone/base/error.hpp"
#include "hone/base/statistics.hpp"
#include "hone/fit/checked_fit.hpp"

namespace hone::calibration {
namespace {

// Of this thread, on which the whole fit runs: a busy machine does not change it.
double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double quantile(std::vector<double>& values, double p) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(p * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

void worsen(Distance& distance, const Known& known, double centre, double spread) {
  const double error = std::abs(centre - known.centre) / known.spread, ratio = spread / known.spread;
  if (!(error <= distance.centre)) distance.centre = error;
  if (!(std::abs(std::log(ratio)) <= std::abs(std::log(distance.spread)))) distance.spread = ratio;
}

// Draws (values, n) against the answer; mean and sd come from the fit's own table.
Distance distance_of(const Truth& truth, const std::vector<std::string>& names, const Matrix<double>& draws,
                     const std::function<std::pair<double, double>(std::size_t)>& moments) {
  if (truth.empty()) return {std::nan(""), std::nan("")};
  std::map<std::string, std::size_t> place;
  for (std::size_t k = 0; k < names.size(); ++k) place[names[k]] = k;
  Distance distance;
  for (const Known& known : truth) {
    const auto found = place.find(known.name);
    if (found == place.end()) continue;  // a transformed value of another parametrisation
    auto [centre, spread] = moments(found->second);
    if (known.by == By::quantiles) {
      std::vector<double> values(draws.cols());
      for (int i = 0; i < draws.cols(); ++i) values[i] = draws(static_cast<int>(found->second), i);
      centre = quantile(values, 0.5);
      spread = (quantile(values, 0.95) - quantile(values, 0.05)) / quantile_width;
    }
    worsen(distance, known, centre, spread);
  }
  return distance;
}

// The largest split R-hat of a parameter: every chain counts as two, its first and its second half.
double split_rhat(const Matrix<double>& values, std::size_t parameters, int chains) {
  const int length = chains > 0 ? values.cols() / chains / 2 : 0;
  if (length < 2) return std::nan("");
  double worst = 1;
  for (int k = 0; k < static_cast<int>(parameters); ++k) {
    Moments means, variances;
    for (int half = 0; half < 2 * chains; ++half) {
      const int first = half / 2 * (values.cols() / chains) + half % 2 * length;
      Moments part;
      for (int i = first; i < first + length; ++i) part.add(values(k, i));
      means.add(part.mean()), variances.add(part.variance());
    }
    const double rhat = std::sqrt((length - 1.0) / length + means.variance() / variances.mean());
    if (!(rhat <= worst)) worst = rhat;
  }
  return worst;
}

// As faults_of_chains in assess/verdict.cpp has them.
Scores scores_of(const Findings& f) {
  const ChainChecks& c = f.chains;
  const double drawn = std::min(c.effective, c.tail_effective) / c.effective_needed;
  const double apart = ModeMasses{f.q.mode_mass, f.q.q_weight, f.q.k_hat}.apart();
  const bool within_modes = f.q.mode_mass.size() > 1 && !c.crosses_modes;
  const bool uncovered = f.modes > 1 && !f.component_per_mode;
  return {(c.nested_rhat - 1) / (most_rhat - 1),
          c.spread / c.spread_limit,
          c.drift / c.drift_limit,
          c.memory / c.memory_limit,
          c.burn_in < long_burn_in ? c.tail_index / heavy_tail : 0,
          least_per_chain / c.per_chain,
          1 / drawn,
          least_chain_acceptance / c.acceptance,
          static_cast<double>(c.divergences) / (most_divergent * static_cast<double>(c.proposals)),
          c.stuck / most_stuck,
          c.sd_error / most_sd_error,
          uncovered      ? 2
          : within_modes ? std::max(f.q.k_hat / usable_k_hat, apart / most_mass_apart)
                         : 0};
}

}  // namespace

bool off(const Distance& distance, const Distance& limit) {
  return !(distance.centre <= limit.centre) || !(std::abs(std::log(distance.spread)) <= std::log(limit.spread));
}

Row run(const Case& one, const Truth& truth, std::uint64_t seed, const Settings& settings) {
  const auto posterior = one.make();
  CheckedFitConfig config;
  config.fit.seed = seed;
  config.fit.threads = settings.threads;
  if (settings.gradients > 0) config.fit.budget.gradients = settings.gradients;
  Row row;
  row.posterior = one.name;
  row.seed = seed;
  const double begun = processor_seconds();
  try {
    const CheckedFit fit = fit_and_check(*posterior, config);
    row.verdict = name_of(fit.judgement.verdict);
    row.gradients = fit.gradients;
    const auto& p = fit.parameters;
    row.q = distance_of(truth, posterior->names(), fit.natural_q,
                        [&](std::size_t k) { return std::pair(p[k].q_mean, p[k].q_sd); });
    row.refined = distance_of(truth, posterior->names(), fit.natural_refined,
                              [&](std::size_t k) { return std::pair(p[k].mean, p[k].sd); });
    row.k_hat = fit.findings.q.k_hat;
    row.nested_rhat = fit.findings.chains.nested_rhat;
    row.plain_rhat = split_rhat(fit.natural_refined, fit.parameter_count, fit.refined.states.chains);
    row.steps = fit.refined.steps;
    row.capped = fit.refined.capped;
    row.scores = scores_of(fit.findings);
  } catch (const InputError&) {  // hone says that it cannot be fitted
    row.verdict = "refused";
    row.q = row.refined = {std::nan(""), std::nan("")};
    row.k_hat = row.nested_rhat = row.plain_rhat = std::nan("");
    row.scores.fill(std::nan(""));
  }
  row.seconds = processor_seconds() - begun;
  return row;
}

std::string header() {
  return fmt::format(
      "posterior,seed,verdict,gradients,seconds,mean_error,sd_ratio,q_mean_error,q_sd_ratio,refined_mean_error,"
      "refined_sd_ratio,k_hat,nested_rhat,plain_rhat,steps,capped,{}",
      fmt::join(check_names, ","));
}

std::string line_of(const Row& r) {
  return fmt::format("{},{},{},{},{:.3f},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{:.5g},{:.5g},{},{:d},{:.3g}",
                     r.posterior, r.seed, r.verdict, r.gradients, r.seconds, r.recommended().centre,
                     r.recommended().spread, r.q.centre, r.q.spread, r.refined.centre, r.refined.spread, r.k_hat,
                     r.nested_rhat, r.plain_rhat, r.steps, r.capped, fmt::join(r.scores, ","));
}

Row row_of(const std::string& line, const std::string& path, int number) {
  constexpr std::size_t first_score = 16;
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  try {
    if (cells.size() != first_score + check_names.size()) throw std::invalid_argument("cells");
    const auto value = [&](std::size_t k) { return std::stod(cells[k]); };
    Row row{.posterior = cells[0],
            .seed = std::stoull(cells[1]),
            .verdict = cells[2],
            .gradients = std::stoll(cells[3]),
            .seconds = value(4),
            .q = {value(7), value(8)},
            .refined = {value(9), value(10)},
            .k_hat = value(11),
            .nested_rhat = value(12),
            .plain_rhat = value(13),
            .steps = std::stoi(cells[14]),
            .capped = cells[15] == "1"};
    for (std::size_t k = 0; k < row.scores.size(); ++k) row.scores[k] = value(first_score + k);
    return row;
  } catch (const std::exception&) {
    throw InputError(fmt::format("'{}', line {}: expected the columns {}", path, number, header()));
  }
}

}  // namespace hone::calibration
