#include "app/run/second_opinion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

#include "app/run/drawn_law.hpp"
#include "app/run/json.hpp"
#include "app/run/method_settings.hpp"
#include "hone/assess/chain_checks.hpp"
#include "hone/assess/importance.hpp"
#include "hone/assess/q_checks.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/fit/parameter_summary.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// Counts evaluations, and finds out when the work must end: `stop` is read between steps of the refinement.
class LimitedTarget final : public Target {
 public:
  LimitedTarget(const Target& target, const Budget& budget, const OpinionWatch& watch)
      : target_(target), budget_(budget), watch_(watch) {}
  int dimension() const override { return target_.dimension(); }
  int good_batch() const override { return target_.good_batch(); }
  std::int64_t count() const { return count_; }
  const std::atomic<bool>* stop() const { return &stop_; }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    target_.evaluate(z, want, value, gradient);
    count_ += z.cols();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun_;
    // The next stage of a refinement takes as long as all earlier stages together.
    if ((watch_.stopped && watch_.stopped()) || (budget_.seconds > 0 && 2 * seconds.count() > budget_.seconds))
      stop_ = true;
  }

 private:
  const Target& target_;
  const Budget& budget_;
  const OpinionWatch& watch_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  mutable std::atomic<std::int64_t> count_ = 0;
  mutable std::atomic<bool> stop_ = false;
};

// Coordinates in which the draws have mean 0 and covariance I, up to the error of the draws.
Whitening whitening_of(MatrixView<const double> z, const std::vector<std::string>& names) {
  const int d = z.rows(), n = z.cols();
  std::vector<double> mean(d), sd(d);
  for (int k = 0; k < d; ++k) {
    Moments m;
    for (int i = 0; i < n; ++i) m.add(z(k, i));
    mean[k] = m.mean();
    sd[k] = m.sd();
    if (!(sd[k] > 0))
      throw InputError(fmt::format("draws: coordinate {} is the same in all draws ({})", k + 1, names[k]));
  }
  if (d > most_full_dimensions || n < 5 * d) return Whitening::diagonal(mean, sd);
  Matrix<double> covariance(d, d);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < d; ++j)
      for (int k = 0; k < d; ++k) covariance(k, j) += (z(k, i) - mean[k]) * (z(j, i) - mean[j]) / (n - 1);
  return Whitening::dense(mean, cholesky(covariance));
}

// Eight draws, moved outwards by half; a draw itself if there is no density there.
SuperStarts starts_of(const Target& target, MatrixView<const double> e) {
  constexpr int count = 8;
  const int d = e.rows();
  SuperStarts starts{Matrix<double>(d, count), std::vector<int>(count, 0)};
  std::vector<double> gradient(d);
  for (int c = 0; c < count; ++c) {
    const auto own = e.column(static_cast<int>((static_cast<std::int64_t>(c) * e.cols()) / count));
    for (int k = 0; k < d; ++k) starts.z(k, c) = 1.5 * own[k];
    double value = 0;
    target.evaluate({starts.z.column(c).data(), d, 1}, Want::both, {&value, 1}, {gradient.data(), d, 1});
    if (value == -infinity) copy(own, starts.z.column(c));
  }
  return starts;
}

// How many of n draws begin a chain: the number of chains of a fit.
int started_by(const CheckedFitConfig& config, int n) { return std::min(n, 8 * config.chains_per_start); }

RefinedConfig refinement(const CheckedFitConfig& config, int draws) {
  const PosteriorFitConfig& fit = config.fit;
  RefinedConfig refine;
  refine.q_draws = draws;  // all are compared
  refine.pairs = started_by(config, draws);
  refine.chains_per_start = config.chains_per_start;
  refine.steps = fit.steps;
  refine.gradients = fit.budget.gradients;
  refine.seed = fit.seed;
  refine.threads = fit.threads;
  return refine;
}

// log p at the draws; enough of them must have one.
std::vector<double> log_p_at(const Target& target, MatrixView<const double> z) {
  std::vector<double> log_p(static_cast<std::size_t>(z.cols()));
  target.evaluate(z, Want::value, log_p, {});
  const auto finite = z.cols() - std::ranges::count(log_p, -infinity);
  if (finite < least_checked)
    throw InputError(
        fmt::format("draws: the model has a density at only {} of {}; expected at least {}: are they on the "
                    "natural scale, or on the unconstrained one (--scale)?",
                    finite, z.cols(), least_checked));
  return log_p;
}

// Pareto's k of the weights p / q at the draws; NaN if q is not known.
double k_hat_of(std::vector<double> log_p, const std::vector<double>& log_q) {
  if (log_q.empty()) return std::nan("");
  for (std::size_t i = 0; i < log_p.size(); ++i) log_p[i] -= log_q[i];
  return smooth_weights(log_p).k_hat;
}

// Whether the draws have all of these names.
bool names_all(const GivenDraws& draws, std::span<const std::string> wanted) {
  const auto named = [&](const std::string& name) { return std::ranges::count(draws.names, name) > 0; };
  return std::ranges::all_of(wanted, named);
}

// For each of the wanted names, its column; `hint` ends the message on one that is missing.
std::vector<int> columns_of(const GivenDraws& draws, std::span<const std::string> wanted, const std::string& what,
                            const std::string& hint) {
  std::map<std::string_view, int> columns;
  for (std::size_t k = 0; k < draws.names.size(); ++k)
    if (!columns.emplace(draws.names[k], static_cast<int>(k)).second)
      throw InputError(fmt::format("{}: the name '{}' appears twice", what, draws.names[k]));
  std::vector<int> result;
  for (const std::string& name : wanted) {
    const auto found = columns.find(name);
    if (found == columns.end())
      throw InputError(
          fmt::format("{}: '{}' is missing; expected every parameter of the model, found {}{}{}", what, name,
                      fmt::join(std::span(draws.names).first(std::min<std::size_t>(8, draws.names.size())), ", "),
                      draws.names.size() > 8 ? ", …" : "", hint));
    result.push_back(found->second);
  }
  return result;
}

std::vector<OpinionRow> rows_of(const std::vector<ParameterSummary>& parameters) {
  std::vector<OpinionRow> rows;
  for (const ParameterSummary& p : parameters)
    rows.push_back({.name = p.name,
                    .given_mean = p.q_mean,
                    .given_sd = p.q_sd,
                    .mean = p.mean,
                    .sd = p.sd,
                    .mcse = p.mcse,
                    .q05 = p.q05,
                    .q50 = p.q50,
                    .q95 = p.q95,
                    .effective = p.effective,
                    .rhat = p.rhat});
  return rows;
}

// The tolerances plus twice the standard errors of a mean and of an sd from n given draws and from the chains; heavy
// tails make them large.
Tolerances beyond_chance(const Tolerances& tolerances, int n, const RefinedDraws& r) {
  const Matrix<double>& e = r.states.z;
  double kurtosis = 3;
  for (int k = 0; k < e.rows(); ++k) {
    Moments m;
    for (int i = 0; i < e.cols(); ++i) m.add(e(k, i));
    double fourth = 0;
    for (int i = 0; i < e.cols(); ++i) fourth += square(square((e(k, i) - m.mean()) / m.sd())) / e.cols();
    kurtosis = std::max(kurtosis, std::min(fourth, 9.0));
  }
  const double effective = std::max(1.0, std::min(r.checks.effective, r.checks.per_chain * r.states.chains));
  const double of_mean = 1.0 / n + 1 / effective;
  return {tolerances.mean + 2 * std::sqrt(of_mean), tolerances.sd + 2 * std::sqrt((kurtosis - 1) / 4 * of_mean),
          tolerances.vcd};
}

// Whether a Gaussian through n draws in d dimensions has so much larger a log density at these draws than at others
// (d (d + 3) / 2n in expectation) that the test of exchangeability would see it: a fifth of the standard error of its
// mean over the pairs.
bool fits_its_own_draws(int d, int n, int pairs) { return d * (d + 3.0) / (2 * n) > 0.2 * std::sqrt(2.0 * d / pairs); }

// At most `most_checked` of the draws, spread evenly over them; so are the first `started` of the result.
Matrix<double> spread(const Matrix<double>& z, int started, std::vector<double>& log_q) {
  const int every = (z.cols() + most_checked - 1) / most_checked, n = (z.cols() + every - 1) / every;
  std::vector<int> order;
  std::vector<bool> taken(static_cast<std::size_t>(n));
  for (int i = 0; i < std::min(started, n); ++i) {
    order.push_back(static_cast<int>(static_cast<std::int64_t>(i) * n / std::min(started, n)));
    taken[static_cast<std::size_t>(order.back())] = true;
  }
  for (int i = 0; i < n; ++i)
    if (!taken[static_cast<std::size_t>(i)]) order.push_back(i);
  Matrix<double> result(z.rows(), n);
  std::vector<double> own;
  for (int i = 0; i < n; ++i) {
    const int from = order[static_cast<std::size_t>(i)] * every;
    copy(z.column(from), result.column(i));
    if (!log_q.empty()) own.push_back(log_q[static_cast<std::size_t>(from)]);
  }
  log_q = std::move(own);
  return result;
}

Matrix<double> over_z(const Whitening& whitening, MatrixView<const double> e) {
  Matrix<double> z(e.rows(), e.cols());
  for (int i = 0; i < z.cols(); ++i) whitening.to_z(e.column(i), z.column(i));
  return z;
}

// Table and checks on the natural scale, and the refined draws themselves. Returns what is to be said of values that
// are not finite, or nothing.
std::string compare_naturally(const Posterior& posterior, const Whitening& whitening, const Matrix<double>& given,
                              RefinedDraws refined, SecondOpinion& result) {
  CheckedFit fit;
  fit.refined = std::move(refined);
  fit.weights.k_hat = infinity;  // there are no importance weights
  fit.parameter_count = result.parameter_count = posterior.parameter_count();
  const RefinedDraws& r = fit.refined;
  const Matrix<double> z = over_z(whitening, r.states.z), of_given = natural_values(posterior, given);
  fit.natural_q = Matrix<double>(of_given.rows(), 0);
  fit.natural_refined = natural_values(posterior, z);
  summarize(posterior, of_given, natural_values(posterior, over_z(whitening, r.before.z)), fit);
  const std::vector<double> rhats = value_rhats(fit.natural_refined, r.states, r.chains_per_start);
  for (std::size_t k = 0; k < rhats.size(); ++k) fit.parameters[k].rhat = rhats[k];
  result.findings.natural = natural_checks(fit, of_given);
  result.findings.natural.shift_se = result.findings.natural.sd_ratio_se = 0;  // beyond_chance allows for both
  result.rows = rows_of(fit.parameters);
  const int n = std::min(given.cols(), z.cols());
  result.z = Matrix<double>(z.rows(), n);
  result.natural = Matrix<double>(of_given.rows(), n);
  for (int i = 0; i < n; ++i) {
    const int from = static_cast<int>(static_cast<std::int64_t>(i) * z.cols() / n);
    copy(z.column(from), result.z.column(i));
    copy(fit.natural_refined.column(from), result.natural.column(i));
    result.log_p.push_back(r.states.log_p[static_cast<std::size_t>(from)]);
  }
  const std::string of_refined = not_finite(fit.natural_refined, posterior.names(), "the refined draws");
  return of_refined.empty() ? not_finite(of_given, posterior.names(), "the given draws") : of_refined;
}

}  // namespace

std::string verdict_name(Verdict verdict) { return verdict == Verdict::use_q ? "use-draws" : name_of(verdict); }

Matrix<double> coordinates_of(const Posterior& posterior, const GivenDraws& draws, Scale scale,
                              const std::string& what) {
  const bool natural = scale == Scale::natural;
  const auto natural_names = std::span(posterior.names()).first(posterior.parameter_count());
  const std::span<const std::string> coordinate_names = posterior.coordinate_names();
  const auto wanted = natural ? natural_names : coordinate_names;
  std::vector<int> columns(wanted.size());
  if (!draws.names.empty()) {
    const std::string other = natural ? "unconstrained" : "natural";
    const bool on_other = names_all(draws, natural ? coordinate_names : natural_names);
    columns = columns_of(draws, wanted, what,
                         on_other ? fmt::format("; these are the names on the {0} scale: --scale {0}", other) : "");
  } else if (static_cast<std::size_t>(draws.values.rows()) == wanted.size()) {
    std::iota(columns.begin(), columns.end(), 0);
  } else {
    throw InputError(fmt::format("{}: {} coordinates, expected the {} {} ones of the model", what, draws.values.rows(),
                                 wanted.size(), natural ? "natural" : "unconstrained"));
  }
  Matrix<double> z(posterior.dimension(), draws.values.cols());
  std::vector<double> own(wanted.size());
  for (int i = 0; i < z.cols(); ++i) {
    for (std::size_t k = 0; k < own.size(); ++k) {
      own[k] = draws.values(columns[k], i);
      if (!std::isfinite(own[k]))
        throw InputError(
            fmt::format("{}: draw {}: {} is {}; expected a finite number", what, i + 1, wanted[k], own[k]));
    }
    if (!natural) {
      copy(own, z.column(i));
      continue;
    }
    try {
      posterior.unconstrain(own, z.column(i));
    } catch (const InputError& error) {
      throw InputError(
          fmt::format("{}: draw {}: {} (a simplex or a matrix needs all its digits: CmdStan writes them with "
                      "sig_figs=18); for draws on the unconstrained scale: --scale unconstrained",
                      what, i + 1, error.what()));
    }
    if (!std::ranges::all_of(z.column(i), [](double x) { return std::isfinite(x); }))
      throw InputError(
          fmt::format("{}: draw {}: a value lies on the boundary of what the model allows; for draws on "
                      "the unconstrained scale: --scale unconstrained",
                      what, i + 1));
  }
  return z;
}

Settings opinion_settings(PosteriorRunConfig& config) {
  Settings s;
  CheckedFitConfig& check = config.check;
  s.add("steps", check.fit.steps, Bounds::between(1, 10000), "HMC steps after which the chains are first checked");
  s.add("budget", config.budget, "gradients, or seconds as 30s", "limit on the work", "N|Ns");
  s.add("tolerance_mean", check.tolerances.mean, Bounds::positive(), "shift of a mean, in sds, that use-draws allows");
  s.add("tolerance_sd", check.tolerances.sd, Bounds::positive(), "relative error of an sd that use-draws allows");
  s.add("tolerance_vcd", check.tolerances.vcd, Bounds::positive(),
        "VCD per dimension that use-draws allows, if log q of the draws is known");
  add_seed_setting(s, check.fit.seed);
  s.add("threads", check.fit.threads, Bounds::between(1, 1024), "threads; results do not depend on it");
  return s;
}

SecondOpinion second_opinion(const Posterior& posterior, const Matrix<double>& given,
                             const std::vector<double>& given_log_q, const CheckedFitConfig& config,
                             const OpinionWatch& watch) {
  if (given.cols() < least_checked)
    throw InputError(fmt::format("draws: {} are too few; expected at least {}", given.cols(), least_checked));
  std::vector<double> log_q = given_log_q;
  const Matrix<double> z = spread(given, started_by(config, std::min(given.cols(), most_checked)), log_q);
  const Whitening whitening = whitening_of(z, posterior.coordinate_names());
  const LimitedTarget limited(posterior, config.fit.budget, watch);
  const std::vector<double> log_p = log_p_at(limited, z);
  const WhitenedTarget target(limited, whitening);
  Matrix<double> e(z.rows(), z.cols());
  for (int i = 0; i < z.cols(); ++i) whitening.to_e(z.column(i), e.column(i));
  const auto known = log_q.empty() ? std::nullopt : gaussian_through(z, log_q);
  const DrawnFamily family(e, whitening, known);
  RefinedConfig refine = refinement(config, z.cols());
  refine.stop = limited.stop();
  refine.whitening = &whitening;
  refine.printed = [&](MatrixView<const double> states) {
    return natural_values(posterior, over_z(whitening, states));
  };
  refine.parameters = static_cast<int>(posterior.parameter_count());
  RefinedDraws r = refine_draws(target, family, starts_of(target, e), refine, [&](int steps, double) {
    if (watch.say) watch.say(fmt::format("refining, {} steps", steps), limited.count());
  });

  SecondOpinion result;
  Findings& f = result.findings;
  f.dimension = z.rows();
  f.starts = 8;
  f.coordinate_names = f.chain_names = coordinate_words(posterior, z);
  f.chains = r.checks;
  if (f.chains.sd_error_value >= 0)
    f.sd_error_name = posterior.names()[static_cast<std::size_t>(f.chains.sd_error_value)];
  f.capped = r.capped && !(watch.stopped && watch.stopped());
  f.steps = r.steps;
  f.drifts = r.drifts;
  if (known) {
    f.at = r.at;
    f.vcd = r.vcd;
  }
  const std::vector<double> same(r.log_p0.size());
  f.q = check_q(r, family, whitening, smooth_weights(same), {config.fit.seed, config.fit.threads, z.cols()});
  if (!known && fits_its_own_draws(z.rows(), z.cols(), r.zt.cols())) f.q.p_value = std::nan("");
  f.q.k_hat = k_hat_of(log_p, log_q);
  const Tolerances allowed = beyond_chance(config.tolerances, z.cols(), r);
  result.started = r.zt.cols();
  result.outside = r.dropped_draws;
  result.gradients = limited.count();
  std::string gaps = compare_naturally(posterior, whitening, z, std::move(r), result);
  result.judgement = judge(f, allowed, Subject::draws);
  if (!gaps.empty()) result.judgement.notes.push_back(std::move(gaps));
  if (z.cols() < given.cols())
    result.judgement.notes.push_back(
        fmt::format("of {} draws {} were checked, spread evenly over them", given.cols(), z.cols()));
  return result;
}

std::string opinion_json(const SecondOpinion& opinion, const Tolerances& tolerances) {
  Json json = parse_json(judgement_json(opinion.judgement, opinion.findings, tolerances));
  json["verdict"] = verdict_name(opinion.judgement.verdict);
  const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); };
  Json& parameters = json["parameters"] = Json::object();
  for (const OpinionRow& row : opinion.rows)
    parameters[row.name] = {{"given_mean", number(row.given_mean)},
                            {"given_sd", number(row.given_sd)},
                            {"mean", number(row.mean)},
                            {"sd", number(row.sd)},
                            {"mcse", number(row.mcse)},
                            {"q05", number(row.q05)},
                            {"q50", number(row.q50)},
                            {"q95", number(row.q95)},
                            {"ess", number(row.effective)},
                            {"rhat", number(row.rhat)}};
  json["chains_from_draws"] = opinion.started;
  json["outside_support"] = opinion.outside;
  json["gradient_evaluations"] = opinion.gradients;
  return json.dump(2) + "\n";
}

}  // namespace hone
