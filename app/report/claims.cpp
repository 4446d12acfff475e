#include "app/report/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "app/report/cell_summary.hpp"
#include "app/report/run_record.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

constexpr double decisive = 3;  // standard errors, for estimates whose standard error is well known

// How many standard errors away from zero a mean of n values must be: Student's t, 99 % on both sides, for n − 1
// degrees of freedom; between entries, the one for fewer degrees.
double decisive_for(std::uint64_t n) {
  struct Entry {
    std::uint64_t degrees;
    double quantile;
  };
  static constexpr Entry table[] = {{1, 63.66},  {2, 9.925},  {3, 5.841},  {4, 4.604}, {5, 4.032},
                                    {6, 3.707},  {7, 3.499},  {8, 3.355},  {9, 3.250}, {10, 3.169},
                                    {15, 2.947}, {20, 2.845}, {30, 2.750}, {60, 2.660}};
  double result = table[0].quantile;
  for (const Entry& entry : table)
    if (entry.degrees < n) result = entry.quantile;
  return result;
}

struct Judged {
  std::string text;
  std::optional<ClaimVerdict> verdict;  // none: not all cells are done
};

// A verdict on a smoke test would be a verdict on chance.
std::string verdict_text(const Judged& judged, const ReportContext& context) {
  if (!judged.verdict) return "not all cells are done";
  return context.scale == name_of(Scale::smoke) ? "not judged at this scale" : name_of(*judged.verdict);
}

struct Claim {
  std::string title, paper, experiment;
  Judged judged;
};

std::string section(const Claim& claim, const ReportContext& context) {
  return fmt::format("## {}\n\nThe paper: {}\n\nThe experiment: {}\n\n{}\n**Verdict: {}.**\n\n", claim.title,
                     claim.paper, claim.experiment, claim.judged.text, verdict_text(claim.judged, context));
}

// Results of the toys of one variant, α and t, by seed.
struct ToyGroup {
  int failed = 0;
  bool complete = true;
  std::map<std::uint64_t, ToyDivergences> divergences;
  std::map<std::uint64_t, double> log_sd;  // of the mean of both standard deviations
};

using ToyKey = std::tuple<std::string, double, int>;

std::map<ToyKey, ToyGroup> toy_groups(const std::vector<ToyRun>& runs, const ReportContext& context) {
  std::map<ToyKey, ToyGroup> groups;
  for (const ToyRun& run : runs) {
    ToyGroup& group = groups[{run.variant, run.alpha, run.steps}];
    if (!is_done(context.folder, run.cell)) {
      group.complete = false;
      continue;
    }
    const auto path = context.folder / "cells" / run.cell.id / "summary.json";
    const std::string text = read_file(path);
    if (parse_json(text).contains("failure")) {
      ++group.failed;
      continue;
    }
    const ToyResult result = ToyResult::from_json(text, path);
    group.divergences[run.seed] = gaussian_toy_divergences(result.mean, result.sd);
    group.log_sd[run.seed] = std::log((result.sd[0] + result.sd[1]) / 2);
  }
  return groups;
}

// KL(q ‖ p) of a minus that of b, for the seeds that both have. A difference, because no q of the family reaches zero.
Moments excess(const ToyGroup& a, const ToyGroup& b) {
  Moments differences;
  for (const auto& [seed, divergence] : a.divergences)
    if (const auto found = b.divergences.find(seed); found != b.divergences.end())
      differences.add(divergence.of_q - found->second.of_q);
  return differences;
}

// "0.123 ± 0.004", without an error from one value; "—" from none.
std::string with_error(const Moments& values, int digits) {
  if (values.count() == 0) return "—";
  const std::string mean = fmt::format("{:.{}f}", values.mean(), digits);
  return values.count() == 1 ? mean : fmt::format("{} ± {:.{}f}", mean, values.estimate().se, digits);
}

Judged judge_alpha(const std::vector<ToyRun>& runs, const ReportContext& context) {
  const auto groups = toy_groups(runs, context);
  Judged judged{"| mixing | α | KL(q ‖ p) | less than for α = 1 by | failed |\n|---|---|---|---|---|\n", {}};
  bool complete = true;
  for (const auto& [key, group] : groups) {
    const auto& [mixing, alpha, steps] = key;
    Moments divergence;
    for (const auto& [seed, value] : group.divergences) divergence.add(value.of_q);
    const Moments less = excess(groups.at({mixing, 1.0, steps}), group);
    judged.text += fmt::format("| {} | {} | {} | {} | {} |\n", mixing, alpha, mean_and_sd(divergence, 3),
                               with_error(less, 3), group.failed);
    complete = complete && group.complete;
  }
  judged.text +=
      "\nMean ± standard deviation over seeds; differences ± standard error. KL(q ‖ p) for α = 1 less that for α = "
      "0.5, under slow mixing, is compared with 0.05 nats: (a) with one draw per iteration, as in the paper, (b) with "
      "16. It holds if it is surely above (99 % by Student's t), or where fits by α = 1 fail and none by α = 0.5 does, "
      "and does not where it is surely below. The claim is about the objective, so (b) decides: with one draw the "
      "paper's RMSProp moves q even where the gradient's mean is zero.\n";
  if (!complete) return judged;
  const auto part = [&](const char* mixing) {
    const ToyGroup &half = groups.at({mixing, 0.5, runs.front().steps}),
                   &one = groups.at({mixing, 1.0, runs.front().steps});
    if (one.failed > 0 && half.failed == 0) return ClaimVerdict::holds;
    return judge_above(excess(one, half), 0.05);
  };
  judged.verdict = part("slow-16");
  judged.text += fmt::format("\n(a) {}; (b) {}.\n", name_of(part("slow")), name_of(*judged.verdict));
  return judged;
}

Moments log_sds(const ToyGroup& group) {
  Moments moments;
  for (const auto& [seed, value] : group.log_sd) moments.add(value);
  return moments;
}

// Whether the spread over seeds is larger in a than in b. It is not if it is surely less than twice as large. The
// log of a standard deviation from n values has a standard error of about √(1 / (2n − 2)).
ClaimVerdict judge_spread(const Moments& a, const Moments& b) {
  if (a.count() < 2 || b.count() < 2) return ClaimVerdict::undecided;
  const double log_ratio = std::log(a.sd() / b.sd());
  const double se = std::sqrt(0.5 / static_cast<double>(a.count() - 1) + 0.5 / static_cast<double>(b.count() - 1));
  if (log_ratio > decisive * se) return ClaimVerdict::holds;
  return log_ratio + decisive * se < std::log(2.0) ? ClaimVerdict::does_not_hold : ClaimVerdict::undecided;
}

// All must hold; a single failure decides.
ClaimVerdict all_of(std::initializer_list<ClaimVerdict> verdicts) {
  ClaimVerdict result = ClaimVerdict::holds;
  for (const ClaimVerdict verdict : verdicts) {
    if (verdict == ClaimVerdict::does_not_hold) return verdict;
    if (verdict == ClaimVerdict::undecided) result = verdict;
  }
  return result;
}

Judged judge_li2017(const std::vector<ToyRun>& runs, const ReportContext& context) {
  const auto groups = toy_groups(runs, context);
  Judged judged{
      "| objective | t | sd of q (geometric mean over seeds) | spread over seeds of its log | KL(p ‖ q) | failed |\n"
      "|---|---|---|---|---|---|\n",
      {}};
  bool complete = true;
  int least = 1000, most = 0;
  for (const auto& [key, group] : groups) {
    const auto& [objective, alpha, steps] = key;
    const Moments sds = log_sds(group);
    Moments divergence;
    for (const auto& [seed, value] : group.divergences) divergence.add(value.of_p);
    judged.text +=
        fmt::format("| {} | {} | {} | {} | {} | {} |\n", objective, steps,
                    sds.count() > 0 ? fmt::format("{:.3f}", std::exp(sds.mean())) : "—",
                    sds.count() > 1 ? fmt::format("{:.3f}", sds.sd()) : "—", mean_and_sd(divergence, 3), group.failed);
    complete = complete && group.complete;
    least = std::min(least, steps);
    most = std::max(most, steps);
  }
  judged.text += fmt::format(
      "\nIt holds if fits by li2017 fail at t = {0} and none by vcd does; or if the spread over seeds of "
      "li2017's log sd at t = {0} is larger than vcd's there and than its own at t = {1}, each by more "
      "than three standard errors of the log ratio; it does not if one of the two is surely less than twice the "
      "other.\n",
      least, most);
  if (!complete) return judged;
  const ToyGroup &small = groups.at({"li2017", 1.0, least}), &large = groups.at({"li2017", 1.0, most}),
                 &vcd = groups.at({"vcd", 1.0, least});
  judged.verdict =
      small.failed > 0 && vcd.failed == 0
          ? ClaimVerdict::holds
          : all_of({judge_spread(log_sds(small), log_sds(vcd)), judge_spread(log_sds(small), log_sds(large))});
  return judged;
}

// Whether the first of two independent estimates is larger.
ClaimVerdict judge_larger(const Estimate& a, const Estimate& b) {
  const double se = std::hypot(a.se, b.se);
  if (!(std::abs(a.mean - b.mean) > decisive * se)) return ClaimVerdict::undecided;
  return a.mean > b.mean ? ClaimVerdict::holds : ClaimVerdict::does_not_hold;
}

struct GradientRow {
  Estimate without, with, large_t;
  double bias = 0;  // of the large-t estimator, relative to the length of the full gradient
};

GradientRow gradient_row(const Json& json) {
  const auto estimate = [&](const char* key) {
    const Json& of = json.at(key);
    return Estimate{of.at("variance").get<double>(), of.at("variance_se").get<double>()};
  };
  const auto full = json.at("with").at("mean").get<std::vector<double>>(),
             short_one = json.at("large_t").at("mean").get<std::vector<double>>();
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < std::min(full.size(), short_one.size()); ++i) {
    difference += (full[i] - short_one[i]) * (full[i] - short_one[i]);
    length += full[i] * full[i];
  }
  return {.without = estimate("without"),
          .with = estimate("with"),
          .large_t = estimate("large_t"),
          .bias = std::sqrt(difference / length)};
}

Judged judge_gradient(const std::vector<GradientPoint>& points, const ReportContext& context) {
  Judged judged{
      "| q | t | variance without C | with C | large-t estimator | its bias, relative |\n|---|---|---|---|---|---|\n",
      {}};
  std::map<std::string, std::map<int, GradientRow>> rows;
  bool complete = true;
  for (const GradientPoint& point : points) {
    const auto found = read_cell(context, point.cell, gradient_row);
    complete = complete && found;
    if (!found) continue;
    const GradientRow row = rows[point.q][point.steps] = *found;
    judged.text += fmt::format("| {} | {} | {:.4g} ± {:.2g} | {:.4g} ± {:.2g} | {:.4g} ± {:.2g} | {:.2f} |\n", point.q,
                               point.steps, row.without.mean, row.without.se, row.with.mean, row.with.se,
                               row.large_t.mean, row.large_t.se, row.bias);
  }
  judged.text +=
      "\nThree parts, each judged at three standard errors. (a) C lowers the variance at every t. (b) The full "
      "estimator without C has a lower variance at the largest t than at the smallest. (c) The large-t estimator has a "
      "lower variance than the full one with C at every t. The claim holds if all do, for both q.\n";
  if (!complete) return judged;
  ClaimVerdict with_c = ClaimVerdict::holds, large_t = ClaimVerdict::holds, falls = ClaimVerdict::holds;
  for (const auto& [q, by_steps] : rows) {
    for (const auto& [steps, row] : by_steps) {
      with_c = all_of({with_c, judge_larger(row.without, row.with)});
      large_t = all_of({large_t, judge_larger(row.with, row.large_t)});
    }
    falls = all_of({falls, judge_larger(by_steps.begin()->second.without, by_steps.rbegin()->second.without)});
  }
  judged.text += fmt::format("\n(a) {}; (b) {}; (c) {}.\n", name_of(with_c), name_of(falls), name_of(large_t));
  judged.verdict = all_of({with_c, falls, large_t});
  return judged;
}

// The mean ELBO of a run's last report interval; none if the run has not finished.
std::optional<double> final_elbo(const TrainingCell& cell, std::uint64_t seed, const ReportContext& context) {
  const auto path = cell.folder(context.folder, seed) / "summary.json";
  if (!std::filesystem::exists(path)) return {};
  const Json json = parse_json(read_file(path));
  if (!json.is_object() || !json.contains("elbo") || json.value("finished", Json()) != true) return {};
  const double elbo = number_in(json["elbo"], "mean");
  return std::isnan(elbo) ? std::nullopt : std::optional(elbo);
}

Judged judge_local(const LocalBaselineCells& cells, const ReportContext& context) {
  Judged judged{"| seed | ELBO, local C from the start | ELBO, shared first | log of the ratio |\n|---|---|---|---|\n",
                {}};
  Moments ratios;
  bool complete = true;
  for (const std::uint64_t seed : cells.from_start.seeds) {
    const auto start = final_elbo(cells.from_start, seed, context),
               shared = final_elbo(cells.shared_first, seed, context);
    complete = complete && start && shared;
    if (start && shared) ratios.add(std::log(*start / *shared));  // both are negative: the data are bits
    const auto text = [](const std::optional<double>& value) { return value ? fmt::format("{:.3f}", *value) : "—"; };
    judged.text += fmt::format("| {} | {} | {} | {} |\n", seed, text(start), text(shared),
                               start && shared ? fmt::format("{:+.3f}", std::log(*start / *shared)) : "—");
  }
  judged.text += fmt::format(
      "\nELBO of training over the last twentieth of {} iterations; shared up to iteration {}, on {}. It holds if "
      "−ELBO is surely larger by more than a hundredth where C is local from the start (99 % by Student's t, of the "
      "log ratio), and does not if surely by less.\n",
      cells.from_start.config.iterations, cells.shared_first.config.train.shared_until, cells.from_start.config.data);
  if (complete) judged.verdict = judge_above(ratios, 0.01);
  return judged;
}

Judged judge_seconds(const std::vector<SecondsPoint>& points, const ReportContext& context) {
  Judged judged{"| model | ms per iteration, vcd | hoffman | log of the ratio |\n|---|---|---|---|\n", {}};
  ClaimVerdict faster = ClaimVerdict::holds;
  bool complete = true;
  for (const SecondsPoint& point : points) {
    const auto found = read_cell(context, point.cell, [](const Json& json) {
      return std::pair(json.at("vcd").get<std::vector<double>>(), json.at("hoffman").get<std::vector<double>>());
    });
    complete = complete && found;
    if (!found) continue;
    const auto& [vcd, hoffman] = *found;
    Moments logs;  // of hoffman / vcd, block by block
    for (std::size_t i = 0; i < std::min(vcd.size(), hoffman.size()); ++i) logs.add(std::log(hoffman[i] / vcd[i]));
    judged.text += fmt::format("| {} | {:.3f} | {:.3f} | {:+.4f} ± {:.4f} |\n", point.model, 1e3 * quantile(vcd, 0.5),
                               1e3 * quantile(hoffman, 0.5), -logs.mean(), logs.estimate().se);
    faster = all_of({faster, judge_above(logs, 0.01)});
  }
  judged.text +=
      "\nMedians over blocks that took turns; the log of vcd's time over hoffman's, ± its standard error over blocks. "
      "It holds if vcd is surely faster by more than a hundredth for both models (99 % by Student's t), and does not "
      "if for one it is surely less.\n";
  if (complete) judged.verdict = faster;
  return judged;
}

}  // namespace

std::string name_of(ClaimVerdict verdict) {
  return verdict == ClaimVerdict::holds           ? "holds"
         : verdict == ClaimVerdict::does_not_hold ? "does not hold"
                                                  : "undecided";
}

ClaimVerdict judge_above(const Moments& values, double margin) {
  if (values.count() < 2) return ClaimVerdict::undecided;
  const Estimate e = values.estimate();
  const double reach = decisive_for(values.count()) * e.se;
  if (e.mean - reach > margin) return ClaimVerdict::holds;
  return e.mean + reach < margin ? ClaimVerdict::does_not_hold : ClaimVerdict::undecided;
}

ToyDivergences gaussian_toy_divergences(std::span<const double> mean, std::span<const double> sd) {
  constexpr double rho = 0.95, determinant = 1 - rho * rho;  // of the toy's covariance; its variances are 1
  const double quadratic = (mean[0] * mean[0] - 2 * rho * mean[0] * mean[1] + mean[1] * mean[1]) / determinant;
  const double log_variances = 2 * std::log(sd[0] * sd[1]);
  const double trace = (sd[0] * sd[0] + sd[1] * sd[1]) / determinant;
  double other = 0;
  for (int i = 0; i < 2; ++i) other += (1 + mean[i] * mean[i]) / (sd[i] * sd[i]);
  return {0.5 * (trace + quadratic - 2 + std::log(determinant) - log_variances),
          0.5 * (other - 2 + log_variances - std::log(determinant))};
}

std::string report_claims(const ClaimCells& cells, const ReportContext& context) {
  const Claim claims[] = {
      {"α against slow mixing",
       "a chain that mixes slowly makes the VCD small for any q, while the α-generalized VCD keeps (1 − α) of the KL "
       "divergence, and so may be more robust (appendix 2).",
       "the Gaussian toy, fitted from the paper's start. Slow: three HMC steps with a step size of 0.002, frozen; "
       "mixing: adapted to "
       "an acceptance of 0.7.",
       judge_alpha(cells.alpha, context)},
      {"li2017 at small t",
       "a gradient that ignores how the refined distribution depends on θ can be unstable, mostly for small t, and is "
       "stable for large t; that of the VCD is stable (section 3).",
       "the Gaussian toy, fitted by both objectives from the same starts, step size adapted between refinements.",
       judge_li2017(cells.li2017, context)},
      {"The gradient's variance",
       "the control variate C lowers it; for very large t it is much lower by itself, and lower still where the score "
       "at z0 is dropped (section 2.4).",
       "one-draw gradients at a fixed q, on the Gaussian toy: at the start of a fit (mean (1, −1), sd 0.1) and near "
       "the VCD's optimum (mean 0, sd 0.56). Variances summed over θ, ± standard error over 20 batches.",
       judge_gradient(cells.gradient, context)},
      {"Local control variates from the start",
       "one C_n per datum from the beginning may lead to instabilities, so that they are shared for 3,000 iterations "
       "(section 4.2).",
       "logistic matrix factorization by the VCD, the same seeds with and without a shared beginning.",
       judge_local(cells.local, context)},
      {"Seconds of VCD and of Hoffman's method",
       "the VCD was slightly faster for all models and data sets, which its authors attribute to the implementation "
       "(section 4.2).",
       "the paper's configurations, timed in turns on one CPU thread, so that what else the machine does falls on "
       "both.",
       judge_seconds(cells.seconds, context)}};
  std::string text = fmt::format(
      "# What the paper says in words, scale {}\n\nExploratory: some criteria were changed after first results "
      "had been seen.\n\n",
      context.scale);
  for (const Claim& claim : claims) text += section(claim, context);
  text += "| claim | verdict |\n|---|---|\n";
  for (const Claim& claim : claims)
    text += fmt::format("| {} | {} |\n", claim.title, verdict_text(claim.judged, context));
  write_report(context, "claims.md", text);
  return text;
}

}  // namespace hone
