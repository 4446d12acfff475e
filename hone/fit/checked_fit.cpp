#include "hone/fit/checked_fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "hone/assess/pareto.hpp"
#include "hone/assess/q_checks.hpp"
#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/scalar.hpp"
#include "hone/fit/moment_match.hpp"
#include "hone/fit/q_geometry.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// Parts of the seed; stages of the fit have the small numbers.
enum Part : std::uint64_t {
  part_starts = 1u << 20,
  part_refine,
  part_checks,
  part_masses,
  part_elbo,
  part_explore  // and one for every pass of it
};

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
  bool follows_chains() const;
  void explore();
  double follow(const RefinedDraws& seen);
  Estimate gain_of(const Whitening& candidate, const RefinedDraws& seen) const;
  RefinedConfig refined_config(std::uint64_t seed) const;
  void refine();
  void compare();
  Matrix<double> natural(MatrixView<const double> e) const;
  ParameterSummary summary_of(std::size_t k, const Matrix<double>& natural_before) const;
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
  SuperStarts supers_;  // over e
  std::shared_ptr<const Kernel> kernel_;
  double step_size_ = 0, most_step_size_ = 1e300;
};

void CheckedFitter::fit() {
  PosteriorFitConfig config = config_.fit;
  if (config.budget.gradients > 0) config.budget.gradients = std::max<std::int64_t>(1, config.budget.gradients / 16);
  config.budget.seconds /= 3;
  if (follows_chains()) {  // q follows the chains later, for which a rough q will do
    config.objective = nullptr;
    config.kl_stages = std::min(config.kl_stages, 4);
  }
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

// Whether q minimises the VCD by the states of the chains that are run anyway: a Gaussian with an objective that
// refines. A mixture or a family of the caller's own follows its objective in the fit.
bool CheckedFitter::follows_chains() const {
  const PosteriorFitConfig& fit = config_.fit;
  return fit.objective && fit.objective->name() == "vcd" && !fit.own_family && fit.family != QKind::mixture &&
         (result_.fit.starts.empty() || result_.fit.q.kind != QKind::mixture);
}

RefinedConfig CheckedFitter::refined_config(std::uint64_t seed) const {
  RefinedConfig config;
  config.kernel = kernel_ ? kernel_ : config_.fit.kernel;
  config.first_step_size = step_size_;
  config.most_step_size = most_step_size_;
  config.acceptance = config_.fit.acceptance;
  config.chains_per_start = config_.chains_per_start;
  config.draws = config_.draws;
  config.steps = config_.fit.steps;
  config.error = 0.5 * config_.error;
  config.seed = seed;
  config.threads = config_.fit.threads;
  const Budget& budget = config_.fit.budget;
  config.stop = budget.stop;
  if (budget.gradients > 0) config.gradients = std::max<std::int64_t>(1, budget.gradients - target_.count());
  if (budget.seconds > 0) {  // at the pace so far
    const double pace = static_cast<double>(target_.count()) / std::max(1e-6, seconds());
    const double left = std::max(1.0, pace * (budget.seconds - seconds()));
    config.gradients = budget.gradients > 0 ? std::min(config.gradients, static_cast<std::int64_t>(left))
                                            : static_cast<std::int64_t>(left);
  }
  return config;
}

// By how much the VCD falls after many steps if q becomes the Gaussian of `candidate`. It is E_p[f] − E_q[f] with
// f = log p − log q: the first from the states seen, the second from a few draws of both, with the same noise.
Estimate CheckedFitter::gain_of(const Whitening& candidate, const RefinedDraws& seen) const {
  constexpr int draws = 256;
  const Whitening& own = result_.fit.q.whitening;
  const int d = target_.dimension();
  const auto log_normal = [](std::span<const double> e) {
    double sum = 0;
    for (const double x : e) sum -= 0.5 * square(x);
    return sum;
  };
  std::vector<double> z(d), e(d), under_p(static_cast<std::size_t>(seen.states.count()));
  for (int i = 0; i < seen.states.count(); ++i) {
    own.to_z(seen.states.z.column(i), z);
    candidate.to_e(z, e);
    under_p[static_cast<std::size_t>(i)] =
        log_normal(e) - candidate.log_det() - log_normal(seen.states.z.column(i)) + own.log_det();
  }
  Matrix<double> noise(d, draws);
  const PhiloxSource random(seed(part_elbo));
  for (int i = 0; i < draws; ++i)
    random.normals({Purpose::draw, assessment_iteration, static_cast<std::uint32_t>(i)}, noise.column(i));
  std::vector<double> here(draws), there(draws);
  WhitenedTarget(target_, own).evaluate(noise, Want::value, here, {});
  WhitenedTarget(target_, candidate).evaluate(noise, Want::value, there, {});
  Moments under_q;
  for (int i = 0; i < draws; ++i)
    if (here[i] != -infinity && there[i] != -infinity)
      under_q.add(there[i] + candidate.log_det() - here[i] - own.log_det());
  const Estimate first = mean_over_chains(under_p, seen.states.chains), second = under_q.estimate();
  return {first.mean + second.mean, std::hypot(first.se, second.se)};
}

// Gives q the moments of the states, or goes half of the way, where that lowers its VCD; says by how much it may have.
double CheckedFitter::follow(const RefinedDraws& seen) {
  FittedQ& q = result_.fit.q;
  std::optional<Whitening> next;
  double gain = 0, possible = 0;
  for (const double part : {1.0, 0.5}) {
    Whitening candidate = matched(q, seen.states, seen.checks.effective, part);
    const Estimate own = gain_of(candidate, seen);
    possible = std::max(possible, own.mean + 2 * own.se);
    if (!(own.mean - 2 * own.se > 0 && own.mean > gain)) continue;
    gain = own.mean;
    next = std::move(candidate);
  }
  if (!next) next = q.whitening;
  supers_.z = Matrix<double>(target_.dimension(), seen.super_ends.cols());
  std::vector<double> z(target_.dimension());
  for (int c = 0; c < supers_.z.cols(); ++c) {
    q.whitening.to_z(seen.super_ends.column(c), z);
    next->to_e(z, supers_.z.column(c));
  }
  result_.fit.stages.push_back({.objective = "vcd",
                                .iterations = static_cast<std::uint32_t>(seen.steps),
                                .change = gain,
                                .acceptance = seen.checks.acceptance,
                                .step_size = seen.step_size,
                                .gradients = target_.count()});
  q.whitening = std::move(*next);
  return possible;
}

// Runs the super-chains for longer and longer, and q follows them as long as that lowers its VCD.
void CheckedFitter::explore() {
  supers_ = super_starts();
  if (!follows_chains()) return;
  constexpr int passes = 3;
  constexpr double settled = 0.01;  // of the VCD, per dimension
  const Budget& budget = config_.fit.budget;
  int steps = std::max(4, config_.fit.steps);
  result_.fit.converged = false;
  for (int pass = 0; pass < passes && !result_.fit.converged; ++pass, steps *= 2) {
    RefinedConfig config = refined_config(derived_seed(config_.fit.seed, part_explore + pass));
    const double cost = 5.0 * supers_.mode.size() * config.chains_per_start * steps;
    if ((budget.stop && *budget.stop) || (config.gradients > 0 && cost > 0.25 * static_cast<double>(config.gradients)))
      break;
    config.pairs = 0;
    config.keep = Keep::gradients;
    config.steps = config.most_steps = steps;
    const FittedQ& q = result_.fit.q;
    const WhitenedTarget whitened(target_, q.whitening);
    const RefinedDraws seen = refine_draws(whitened, *q.family, supers_, config);
    kernel_ = seen.kernel;
    step_size_ = seen.step_size;
    most_step_size_ = seen.most_step_size;
    const double gain = follow(seen);
    say(detail::format("{} steps of the chains, nested R-hat {:.3f}, q's VCD fell by at most {:.2g}", steps,
                       seen.checks.nested_rhat, gain));
    result_.fit.converged = gain < settled * target_.dimension() && seen.checks.nested_rhat < 1.1;
  }
  result_.fit.gradients = target_.count();
}

void CheckedFitter::refine() {
  const FittedQ& q = result_.fit.q;
  const WhitenedTarget whitened(target_, q.whitening);
  RefinedConfig config = refined_config(seed(part_refine));
  constexpr int draws_over_modes = 1600;  // chains stay in their modes: only their number makes the error small
  config.pairs = q.family->components() > 1 ? draws_over_modes : 8 * config_.chains_per_start;
  config.q_draws = std::max(config.q_draws, config.pairs);
  config.printed = [this](MatrixView<const double> e) { return natural(e); };
  result_.refined = refine_draws(whitened, *q.family, supers_, config, [this](int steps, double rhat) {
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

// What value k of the refined draws shows.
ParameterSummary CheckedFitter::summary_of(std::size_t k, const Matrix<double>& natural_before) const {
  const int row = static_cast<int>(k), chains = result_.refined.states.chains;
  const auto values_of = [row](const Matrix<double>& table) {
    std::vector<double> values(static_cast<std::size_t>(table.cols()));
    for (int i = 0; i < table.cols(); ++i) values[static_cast<std::size_t>(i)] = table(row, i);
    return values;
  };
  ParameterSummary s{};
  s.name = posterior_.names()[k];
  s.is_mean = s.is_sd = std::nan("");
  Moments q, refined;
  const std::vector<double> of_q = values_of(result_.natural_q);
  std::vector<double> values = values_of(result_.natural_refined);
  for (const double x : of_q) q.add(x);
  for (const double x : values) refined.add(x);
  s.q_mean = q.mean();
  s.q_sd = q.sd();
  s.mean = refined.mean();
  s.sd = refined.sd();
  if (!std::isfinite(s.mean)) {
    s.mcse = s.effective = s.tail_effective = s.q05 = s.q50 = s.q95 = s.mean;
  } else {
    s.effective = effective_draws(values, chains);
    s.mcse = mean_over_chains(values, chains).se;
    // What the mean moved since the states before, beyond two standard errors: a bias that may remain.
    const std::vector<double> now = means_of_chains(values, chains),
                              before = means_of_chains(values_of(natural_before), chains);
    Moments change;
    for (std::size_t c = 0; c < now.size(); ++c) change.add(now[c] - before[c]);
    const Estimate moved = change.estimate();
    if (std::isfinite(moved.mean)) s.mcse = std::hypot(s.mcse, std::max(0.0, std::abs(moved.mean) - 2 * moved.se));
    std::vector<double> sorted = values;
    s.q05 = quantile_of(sorted, 0.05);
    s.q50 = quantile_of(sorted, 0.5);
    s.q95 = quantile_of(sorted, 0.95);
    s.tail_effective =
        std::min(effective_draws_below(values, chains, s.q05), effective_draws_below(values, chains, s.q95));
  }
  if (result_.weights.k_hat < 0.7) {
    double first = 0, second = 0;
    for (std::size_t i = 0; i < of_q.size(); ++i) first += std::exp(result_.weights.log_weight[i]) * of_q[i];
    for (std::size_t i = 0; i < of_q.size(); ++i)
      second += std::exp(result_.weights.log_weight[i]) * square(of_q[i] - first);
    s.is_mean = first;
    s.is_sd = std::sqrt(second);
  }
  return s;
}

void CheckedFitter::summarize() {
  const Matrix<double> before = natural(result_.refined.before.z);
  for (std::size_t k = 0; k < posterior_.names().size(); ++k) result_.parameters.push_back(summary_of(k, before));
}

// The relative error of a standard deviation of n draws, from the fourth moment: heavy tails make it large.
double sd_error(const Matrix<double>& table, std::size_t row, double mean, double sd, double n) {
  double fourth = 0;
  for (int i = 0; i < table.cols(); ++i)
    fourth += square(square((table(static_cast<int>(row), i) - mean) / sd)) / table.cols();
  return std::sqrt((fourth - 1) / (4 * n));
}

// The larger Pareto k of the two tails of a row; tails are what lies beyond 3 √n values.
double tail_index(const Matrix<double>& table, std::size_t row) {
  std::vector<double> values(static_cast<std::size_t>(table.cols()));
  for (int i = 0; i < table.cols(); ++i) values[static_cast<std::size_t>(i)] = table(static_cast<int>(row), i);
  std::ranges::sort(values);
  const auto tail = static_cast<std::size_t>(3 * std::sqrt(static_cast<double>(values.size())));
  if (2 * tail >= values.size() || tail < 20) return 0;
  double k = 0;
  for (int side = 0; side < 2; ++side) {
    std::vector<double> excess;
    for (std::size_t i = values.size() - tail; i < values.size(); ++i)
      excess.push_back(std::max(1e-300, values[i] - values[values.size() - tail - 1]));
    if (std::isfinite(excess.back()) && excess[excess.size() / 4] > 1e-12 * excess.back())
      k = std::max(k, fit_pareto(excess).k);
    std::ranges::reverse(values);
    for (double& x : values) x = -x;
  }
  return k;
}

// Of the parameters proper: the largest shift and the worst sd, with the errors that the draws leave them, and the
// heaviest tail.
void CheckedFitter::find_natural_checks() {
  NaturalChecks& worst = result_.findings.natural;
  const double n0 = result_.natural_q.cols();
  for (std::size_t k = 0; k < posterior_.parameter_count(); ++k) {
    const ParameterSummary& s = result_.parameters[k];
    if (!(s.sd > 0) || !(s.q_sd > 0)) continue;  // constant, or not finite
    const double shift = std::abs(s.q_mean - s.mean) / s.sd, ratio = s.q_sd / s.sd;
    if (shift > worst.shift) {
      worst.shift = shift;
      worst.shift_se = std::hypot(s.mcse / s.sd, ratio / std::sqrt(n0));
      worst.shift_name = s.name;
    }
    if (const double index = tail_index(result_.natural_refined, k); index > worst.tail_index) {
      worst.tail_index = index;
      worst.tail_name = s.name;
    }
    if (std::abs(std::log(ratio)) <= std::abs(std::log(worst.sd_ratio))) continue;
    worst.sd_ratio = ratio;
    worst.sd_ratio_se = std::hypot(sd_error(result_.natural_q, k, s.q_mean, s.q_sd, n0),
                                   sd_error(result_.natural_refined, k, s.mean, s.sd, s.effective));
    worst.sd_name = s.name;
  }
}

void CheckedFitter::compare() {
  const RefinedDraws& r = result_.refined;
  const FittedQ& q = result_.fit.q;
  const double log_det = q.whitening.log_det();
  std::vector<double> ratio(r.log_p0.size());
  for (std::size_t i = 0; i < ratio.size(); ++i) ratio[i] = r.log_p0[i] - r.log_q0[i];
  result_.weights = smooth_weights(ratio);
  const auto over_z = [log_det](std::vector<double> log_q) {
    for (double& x : log_q) x -= log_det;
    return log_q;
  };
  result_.log_p0 = r.log_p0;
  result_.log_p = r.states.log_p;
  result_.log_q0 = over_z(r.log_q0);
  result_.log_q = over_z(r.log_q);

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
  f.vcd = r.vcd;
  f.q = check_q(r, *q.family, q.whitening, result_.weights, seed(part_checks), config_.fit.threads);
  // Chains move in e: with a triangular L, e_i is what z_i has beyond the coordinates before it.
  for (const std::string& name : f.coordinate_names)
    f.chain_names.push_back(q.whitening.is_diagonal() ? name : name + " (whitened)");
}

CheckedFit CheckedFitter::run() {
  fit();
  explore();
  refine();
  say("comparing q with the refined draws");
  compare();
  result_.natural_q = natural(result_.refined.z0);
  result_.natural_refined = natural(result_.refined.states.z);
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
