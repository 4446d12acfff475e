#include "app/cli/check_draws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/budget_bar.hpp"
#include "app/cli/commands.hpp"
#include "app/cli/signals.hpp"
#include "app/run/draws_file.hpp"
#include "app/run/fit_groups.hpp"
#include "app/run/fit_table.hpp"
#include "app/run/json.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"
#include "hone/target/stan.hpp"

namespace hone {
namespace {

std::string listed(const std::vector<std::string>& files) {
  return files.size() == 1 ? files.front() : fmt::format("{} and {} more", files.front(), files.size() - 1);
}

GivenDraws read_draws(const std::vector<std::string>& files) {
  const bool netcdf = std::ranges::any_of(
      files, [](const std::string& file) { return std::filesystem::path(file).extension() == ".nc"; });
  if (netcdf && files.size() > 1) throw InputError("--draws: expected one NetCDF file; it holds all chains");
  for (const std::string& file : files)
    if (!std::filesystem::is_regular_file(file)) throw InputError(fmt::format("{}: there is no such file", file));
  return netcdf ? read_inference_draws(files.front()) : read_csv_draws({files.begin(), files.end()});
}

ShownValues shown(const DrawsRequest& request) { return {.names = request.show, .whose = "draws"}; }

// The summary that the table of a fit shows, with the given draws in place of q.
Json table_of(const SecondOpinion& opinion, const std::string& model) {
  const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); };
  std::vector<std::string> names;
  Json parameters = Json::object();
  for (const OpinionRow& r : opinion.rows) {
    names.push_back(r.name);
    parameters[r.name] = {{"q_mean", number(r.given_mean)}, {"q_sd", number(r.given_sd)},
                          {"mean", number(r.mean)},         {"sd", number(r.sd)},
                          {"mcse", number(r.mcse)},         {"q05", number(r.q05)},
                          {"q50", number(r.q50)},           {"q95", number(r.q95)},
                          {"ess", number(r.effective)},     {"rhat", number(r.rhat)}};
  }
  const FitGroups groups = fit_groups(names, {}, model);
  return {
      {"parameter_count", opinion.parameter_count},
      {"parameters", parameters},
      {"groups", {{"log_likelihood", groups.log_likelihood}, {"posterior_predictive", groups.posterior_predictive}}}};
}

void print_opinion(const SecondOpinion& opinion, const DrawsRequest& request) {
  const int width = terminal_width(stdout);
  const Findings& f = opinion.findings;
  fmt::print("{}\n", text_of(fit_table(table_of(opinion, request.config.model), shown(request)), width));
  fmt::print("{}", wrapped("",
                           fmt::format("right of the bar: {} chains of {} HMC steps, without their burn-in, {} of them "
                                       "from the draws; {} gradients",
                                       f.chains.chains, f.steps, opinion.started, opinion.gradients),
                           width));
  if (opinion.outside > 0) fmt::print("{} draws lie where the model has no density\n", opinion.outside);
  fmt::print("\nverdict: {}\n", verdict_name(opinion.judgement.verdict));
  for (const std::string& reason : opinion.judgement.reasons) fmt::print("{}", wrapped("  - ", reason, width));
  fmt::print("\n{}", wrapped("",
                             fmt::format("{}nested R-hat {:.4f}, drift {:.1f} of {:.1f} standard errors",
                                         std::isnan(f.q.p_value)
                                             ? ""
                                             : fmt::format("p-value of draws = posterior {:.3f}, ", f.q.p_value),
                                         f.chains.nested_rhat, f.chains.drift, f.chains.drift_limit),
                             width));
  if (!f.at.empty()) fmt::print("VCD {:.4f} ± {:.4f}\n", f.vcd.mean, f.vcd.se);
  for (const std::string& note : opinion.judgement.notes) fmt::print("{}", wrapped("note: ", note, width));
}

void write_opinion(const std::string& out, const Posterior& posterior, const SecondOpinion& opinion,
                   const std::string& json) {
  const RunFolder folder(out);
  const std::vector<double> unknown(opinion.log_p.size(), std::nan(""));
  const std::string refined =
      fmt::format("refined draws: states of chains from given draws, up to step {}", opinion.findings.steps);
  const std::string verdict = "verdict = " + verdict_name(opinion.judgement.verdict);
  const std::string version = stan_version(posterior);
  write_stan_csv(folder.path() / "draws.csv", {posterior.names(), opinion.natural, opinion.log_p, unknown},
                 {refined, verdict}, version);
  write_stan_csv(folder.path() / "draws_unconstrained.csv",
                 {posterior.coordinate_names(), opinion.z, opinion.log_p, unknown}, {refined, verdict}, version);
  folder.write("check.json", json);
}

}  // namespace

PosteriorRunConfig with_all_threads() {
  PosteriorRunConfig config;
  config.check.fit.threads = default_threads();
  return config;
}

void end_with(Verdict verdict) {
  if (verdict != Verdict::use_q) throw Ended{verdict == Verdict::use_refined ? 10 : 11};
}

void check_draws(DrawsRequest& request) {
  resolve(request.config);
  if (!request.out.empty()) RunFolder::check(request.out);
  const GivenDraws given = read_draws(request.draws);
  const auto posterior = until_signal([&](const std::function<bool()>& stop) {
    StanOptions options;
    options.stop = stop;
    if (!request.quiet) options.progress = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
    return open_posterior(request.config, options);
  });
  check_shown(posterior->names(), shown(request));
  const Matrix<double> z = coordinates_of(*posterior, given, request.scale, listed(request.draws));
  SecondOpinion opinion;
  {
    const SignalNote note;
    BudgetBar bar(*posterior, request.config.check.fit.budget, "check", request.quiet);
    opinion = second_opinion(bar.posterior(), z, given.log_q, request.config.check,
                             {[] { return stop_signal != 0; },
                              [&](const std::string& text, std::int64_t gradients) { bar.doing(text, gradients); }});
    bar.finish(opinion.gradients);
  }
  if (stop_signal != 0)
    opinion.judgement.notes.push_back(
        "the check was stopped early: this result rests on the draws that it had by then");
  const std::string json = opinion_json(opinion, request.config.check.tolerances);
  if (!request.out.empty()) write_opinion(request.out, *posterior, opinion, json);
  if (request.json)
    fmt::print("{}", json);
  else
    print_opinion(opinion, request);
  if (!request.out.empty() && !request.quiet) fmt::print(stderr, "refined draws: {}\n", request.out);
  end_with(opinion.judgement.verdict);
}

}  // namespace hone
