#include "hone/fit/checked_fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "hone/assess/q_checks.hpp"
#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/scalar.hpp"
#include "hone/fit/q_geometry.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// Parts of the seed; stages of the fit have the small numbers.
enum Part : std::uint64_t { part_starts = 1u << 20, part_refine, part_checks, part_masses, part_elbo };

class CheckedFitter {
 public:
  CheckedFitter(const Posterior& posterior, const CheckedFitConfig& config, const CheckedFitProgress& progress)
      : posterior_(posterior), target_(posterior), config_(config), progress_(progress) {}
  CheckedFit run();

 private:
  void fit();
  void set_masses();
  double elbo_of_q() const;
  void place(const std::function<void(std::uint32_t, std::span<double>)>& propose, std::span<const double> last_resort,
             std::span<double> e) const;
  SuperStarts super_starts();
  void refine();
  void compare();
  Matrix<double> natural(MatrixView<const double> e) const;
  void summarize();
  void find_natural_checks();

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }
  void say(const std::string& text) const {
    if (progress_) progress_(text, target_.count());
  }
  std::uint64_t seed(Part part) const { return derived_seed(config_.fit.seed, part); }

  const Posterior& posterior_;
  CountedTarget target_;
  const CheckedFitConfig& config_;
  const CheckedFitProgress& progress_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  CheckedFit result_;
};

void CheckedFitter::fit() {
  PosteriorFitConfig config = config_.fit;
  if (config.budget.gradients > 0) config.budget.gradients = std::max<std::int64_t>(1, config.budget.gradients / 16);
  config.budget.seconds /= 3;
  say("searching from the starts");
  const auto observe = [this](const PosteriorFit&, const Stage* stage) {
    if (stage)
      say(detail::format("{}, {} iterations, q changed by {:.2g}", stage->objective, stage->iterations, stage->change));
  };
  try {
    result_.fit = fit_posterior(target_, config, observe);
  } catch (const NowhereFinite& error) {  // in the model's own words, where it has some
    const std::string complaint = posterior_.complaint();
    if (complaint.empty()) throw;
    throw NowhereFinite(detail::format("{}. The model says: {}", error.what(), complaint));
  } catch (const RunsAway& error) {
    throw RunsAway(error.coordinate, posterior_.coordinate_names()[error.coordinate]);
  }
  if (result_.fit.q.family->components() > 1) set_masses();
  result_.fit_seconds = seconds();
}

// A mixture's weights from importance weights under it, where these are of use: how many starts reached a mode says
// nothing.
void CheckedFitter::set_masses() {
  Family& mixture = *result_.fit.q.family;
  const WhitenedTarget whitened(target_, result_.fit.q.whitening);
  const PhiloxSource random(seed(part_masses));
  constexpr int draws = 2000;
  std::vector<int> component;
  const Matrix<double> z = independent_draws(mixture, draws, random, &component);
  std::vector<double> log_p(draws), log_q(draws);
  whitened.evaluate(z, Want::value, log_p, {});
  mixture.log_density(z, Want::value, log_q, {});
  for (int i = 0; i < draws; ++i) log_p[i] -= log_q[i];
  const Psis weights = smooth_weights(log_p);
  if (!(weights.k_hat < 0.7)) return;
  std::vector<double> mass(mixture.components(), 1e-6);
  for (int i = 0; i < draws; ++i) mass[component[i]] += std::exp(weights.log_weight[i]);
  for (double& m : mass) m = std::log(m);
  mixture.set_log_weights(mass);
}

// The ELBO of q over z, from a few draws.
double CheckedFitter::elbo_of_q() const {
  constexpr int draws = 200;
  const FittedQ& q = result_.fit.q;
  const WhitenedTarget whitened(target_, q.whitening);
  const Matrix<double> e = independent_draws(*q.family, draws, PhiloxSource(seed(part_elbo)));
  std::vector<double> log_p(draws), log_q(draws);
  whitened.evaluate(e, Want::value, log_p, {});
  q.family->log_density(e, Want::value, log_q, {});
  Moments f;
  for (int i = 0; i < draws; ++i)
    if (log_p[i] != -infinity) f.add(log_p[i] - log_q[i] + q.whitening.log_det());
  return f.mean();
}

// A point over e at which log p is finite: what `propose` gives at one of twenty attempts, or else the last resort.
void CheckedFitter::place(const std::function<void(std::uint32_t, std::span<double>)>& propose,
                          std::span<const double> last_resort, std::span<double> e) const {
  const int d = target_.dimension();
  const Whitening& whitening = result_.fit.q.whitening;
  std::vector<double> z(d), gradient(d);
  double value = -infinity;
  for (std::uint32_t attempt = 0; attempt < 20 && value == -infinity; ++attempt) {
    propose(attempt, e);
    whitening.to_z(e, z);
    target_.evaluate({z.data(), d, 1}, Want::both, {&value, 1}, {gradient.data(), d, 1});
  }
  if (value == -infinity) whitening.to_e(last_resort, e);
}

// Super-chains begin at draws of the starts' own approximations, where these are not far worse than q; the others at
// draws of q, half as wide again. At least eight, and two per mode of a mixture.
SuperStarts CheckedFitter::super_starts() {
  const PosteriorFit& fit = result_.fit;
  const int d = target_.dimension();
  // One component per mode. A family of the caller's own is not told of the modes, whatever its components.
  const bool mixture = fit.q.kind == QKind::mixture && fit.modes > 1;
  const double least = elbo_of_q() - negligible_mass;
  std::vector<std::vector<std::size_t>> own(mixture ? fit.modes : 1);
  for (std::size_t k = 0; k < fit.starts.size(); ++k) {
    const bool counts = fit.mode_of_start[k] >= 0 && (mixture || fit.starts[k].elbo >= least);
    if (counts) own[mixture ? fit.mode_of_start[k] : 0].push_back(k);
    result_.findings.left_out += !counts;
  }
  const int each = std::max(2, (8 + static_cast<int>(own.size()) - 1) / static_cast<int>(own.size()));
  SuperStarts result{Matrix<double>(d, each * static_cast<int>(own.size())), {}};
  const PhiloxSource random(seed(part_starts));
  const Matrix<double> wide = independent_draws(*fit.q.family, 20 * result.z.cols(), random);
  std::vector<double> noise(d), z(d);
  for (std::size_t mode = 0; mode < own.size(); ++mode)
    for (std::size_t i = 0; i < static_cast<std::size_t>(each); ++i) {
      const int column = static_cast<int>(result.mode.size());
      result.mode.push_back(static_cast<int>(mode));
      const bool from_q = !mixture && i >= own[mode].size();
      const LocalNormal& local = from_q ? fit.starts.front() : fit.starts[own[mode][i % own[mode].size()]];
      const auto propose = [&](std::uint32_t attempt, std::span<double> e) {
        if (from_q) {
          copy(wide.column(20 * column + static_cast<int>(attempt)), e);
          for (double& x : e) x *= 1.5;
          return;
        }
        random.normals({Purpose::start, attempt, static_cast<std::uint32_t>(column)}, noise);
        local.whitening.to_z(noise, z);
        fit.q.whitening.to_e(z, e);
      };
      place(propose, local.end, result.z.column(column));
    }
  return result;
}

void CheckedFitter::refine() {
  const FittedQ& q = result_.fit.q;
  const WhitenedTarget whitened(target_, q.whitening);
  RefinedConfig config;
  config.kernel = config_.fit.kernel;
  config.acceptance = config_.fit.acceptance;
  config.draws = config_.draws;
  config.steps = config_.fit.steps;
  config.seed = seed(part_refine);
  config.threads = config_.fit.threads;
  const Budget& budget = config_.fit.budget;
  config.stop = budget.stop;
  if (budget.gradients > 0) config.gradients = std::max<std::int64_t>(1, budget.gradients - target_.count());
  if (budget.seconds > 0) {  // at the pace of the fit
    const double pace = static_cast<double>(target_.count()) / std::max(1e-6, result_.fit_seconds);
    const double left = std::max(1.0, pace * (budget.seconds - seconds()));
    config.gradients = budget.gradients > 0 ? std::min(config.gradients, static_cast<std::int64_t>(left))
                                            : static_cast<std::int64_t>(left);
  }
  result_.refined = refine_draws(whitened, *q.family, super_starts(), config, [this](int steps, double rhat) {
    say(detail::format("refining, {} steps, nested R-hat {:.3f}", steps, rhat));
  });
}

Matrix<double> CheckedFitter::natural(MatrixView<const double> e) const {
  Matrix<double> result(static_cast<int>(posterior_.names().size()), e.cols());
  std::vector<double> z(e.rows());
  for (int i = 0; i < e.cols(); ++i) {
    result_.fit.q.whitening.to_z(e.column(i), z);
    try {
      posterior_.constrain(z, result.column(i));
    } catch (const Error&) {
      std::ranges::fill(result.column(i), std::nan(""));
    }
  }
  return result;
}

void CheckedFitter::summarize() {
  const int n = result_.refined.count();
  std::vector<double> values(n);
  const auto quantile = [&values, n](double p) {  // between the two nearest; puts smaller values before larger ones
    const double at = p * (n - 1);
    const auto low = values.begin() + static_cast<std::ptrdiff_t>(at);
    std::ranges::nth_element(values, low);
    const double next = low + 1 < values.end() ? *std::min_element(low + 1, values.end()) : *low;
    return *low + (at - std::floor(at)) * (next - *low);
  };
  for (std::size_t k = 0; k < posterior_.names().size(); ++k) {
    const int row = static_cast<int>(k);
    ParameterSummary s{};
    s.name = posterior_.names()[k];
    s.is_mean = s.is_sd = std::nan("");
    Moments q, refined;
    for (int i = 0; i < n; ++i) {
      q.add(result_.natural_q(row, i));
      refined.add(values[i] = result_.natural_refined(row, i));
    }
    s.q_mean = q.mean();
    s.q_sd = q.sd();
    s.mean = refined.mean();
    s.sd = refined.sd();
    s.mcse = refined.estimate().se;
    if (std::isnan(s.mean)) {
      s.q05 = s.q50 = s.q95 = s.mean;
    } else {
      s.q05 = quantile(0.05);
      s.q50 = quantile(0.5);
      s.q95 = quantile(0.95);
    }
    if (result_.weights.k_hat < 0.7) {
      double first = 0, second = 0;
      for (int i = 0; i < n; ++i) first += std::exp(result_.weights.log_weight[i]) * result_.natural_q(row, i);
      for (int i = 0; i < n; ++i)
        second += std::exp(result_.weights.log_weight[i]) * square(result_.natural_q(row, i) - first);
      s.is_mean = first;
      s.is_sd = std::sqrt(second);
    }
    result_.parameters.push_back(s);
  }
}

// Of the parameters proper: the largest shift and the worst sd, with the errors that n draws leave them.
void CheckedFitter::find_natural_checks() {
  NaturalChecks& worst = result_.findings.natural;
  const int n = result_.refined.count();
  for (std::size_t k = 0; k < posterior_.parameter_count(); ++k) {
    const ParameterSummary& s = result_.parameters[k];
    if (!(s.sd > 0) || !(s.q_sd > 0)) continue;  // constant, or not finite
    const double shift = std::abs(s.q_mean - s.mean) / s.sd;
    if (shift > worst.shift) {
      worst.shift = shift;
      worst.shift_se = std::sqrt((1 + square(s.q_sd / s.sd)) / n);
      worst.shift_name = s.name;
    }
    const double ratio = s.q_sd / s.sd;
    if (std::abs(std::log(ratio)) <= std::abs(std::log(worst.sd_ratio))) continue;
    // The error of a standard deviation, from the fourth moments: heavy tails make it large.
    double se = 0;
    for (const auto& [values, mean, sd] :
         {std::tuple{&result_.natural_q, s.q_mean, s.q_sd}, std::tuple{&result_.natural_refined, s.mean, s.sd}}) {
      double fourth = 0;
      for (int i = 0; i < n; ++i) fourth += square(square(((*values)(static_cast<int>(k), i) - mean) / sd)) / n;
      se += (fourth - 1) / (4.0 * n);
    }
    worst.sd_ratio = ratio;
    worst.sd_ratio_se = std::sqrt(se);
    worst.sd_name = s.name;
  }
}

void CheckedFitter::compare() {
  const RefinedDraws& r = result_.refined;
  const FittedQ& q = result_.fit.q;
  const double log_det = q.whitening.log_det();
  std::vector<double> ratio(r.count());
  for (int i = 0; i < r.count(); ++i) ratio[i] = r.log_p0[i] - r.log_q0[i];
  result_.weights = smooth_weights(ratio);
  const auto over_z = [log_det](std::vector<double> log_q) {
    for (double& x : log_q) x -= log_det;
    return log_q;
  };
  result_.log_p0 = r.log_p0;
  result_.log_pt = r.log_pt;
  result_.log_q0 = over_z(r.log_q0);
  result_.log_qt = over_z(r.log_qt);

  Findings& f = result_.findings;
  f.dimension = target_.dimension();
  f.starts = static_cast<int>(result_.fit.starts.size());
  f.modes = result_.fit.modes;
  f.component_per_mode = q.kind == QKind::mixture;
  f.fit_converged = result_.fit.converged;
  f.coordinate_names = posterior_.coordinate_names();
  f.chains = r.checks;
  f.capped = r.capped;
  f.steps = r.steps;
  f.at = r.at;
  f.q = check_q(r, *q.family, q.whitening, result_.weights, seed(part_checks), config_.fit.threads);
  // Chains move in e: with a triangular L, e_i is what z_i has beyond the coordinates before it.
  for (const std::string& name : f.coordinate_names)
    f.chain_names.push_back(q.whitening.is_diagonal() ? name : name + " (whitened)");
}

CheckedFit CheckedFitter::run() {
  fit();
  refine();
  say("comparing q with the refined draws");
  compare();
  result_.natural_q = natural(result_.refined.z0);
  result_.natural_refined = natural(result_.refined.zt);
  summarize();
  find_natural_checks();
  result_.judgement = judge(result_.findings, config_.tolerances);
  result_.parameter_count = posterior_.parameter_count();
  result_.gradients = target_.count();
  result_.seconds = seconds();
  return std::move(result_);
}

}  // namespace

CheckedFit fit_and_check(const Posterior& posterior, const CheckedFitConfig& config,
                         const CheckedFitProgress& progress) {
  if (config.draws < 100) throw InputError("the number of draws must be at least 100");
  return CheckedFitter(posterior, config, progress).run();
}

}  // namespace hone
