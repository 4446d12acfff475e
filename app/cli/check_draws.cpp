#include "app/cli/check_draws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/budget_bar.hpp"
#include "app/cli/commands.hpp"
#include "app/cli/signals.hpp"
#include "app/run/draws_file.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

std::string listed(const std::vector<std::string>& files) {
  return files.size() == 1 ? files.front() : fmt::format("{} and {} more", files.front(), files.size() - 1);
}

GivenDraws read_draws(const std::vector<std::string>& files) {
  const bool netcdf = std::filesystem::path(files.front()).extension() == ".nc";
  if (netcdf && files.size() > 1) throw InputError("--draws: expected one NetCDF file; it holds all chains");
  for (const std::string& file : files)
    if (!std::filesystem::is_regular_file(file)) throw InputError(fmt::format("{}: there is no such file", file));
  return netcdf ? read_inference_draws(files.front()) : read_csv_draws({files.begin(), files.end()});
}

std::string cell(double x) { return std::isnan(x) ? fmt::format("{:>11}", "-") : fmt::format("{:>11.4g}", x); }

void print_opinion(const SecondOpinion& opinion) {
  constexpr std::size_t most_rows = 40;
  const std::size_t rows = std::min(most_rows, opinion.rows.size());
  std::size_t width = 9;
  for (std::size_t k = 0; k < rows; ++k) width = std::max(width, opinion.rows[k].name.size());
  fmt::print("{:<{}} {:>11}{:>11}  |{:>11}{:>11}{:>11}\n", "", width, "draws mean", "draws sd", "mean", "sd", "mcse");
  for (std::size_t k = 0; k < rows; ++k) {
    const OpinionRow& r = opinion.rows[k];
    fmt::print("{:<{}} {}{}  |{}{}{}\n", r.name, width, cell(r.given_mean), cell(r.given_sd), cell(r.mean), cell(r.sd),
               cell(r.mcse));
  }
  if (rows < opinion.rows.size()) fmt::print("… {} more\n", opinion.rows.size() - rows);
  const Findings& f = opinion.findings;
  fmt::print("\nright of the bar: {} draws, refined by {} HMC steps each; {} gradients\n", opinion.z.cols(), f.steps,
             opinion.gradients);
  if (opinion.outside > 0) fmt::print("{} draws lie where the model has no density\n", opinion.outside);
  fmt::print("\nverdict: {}\n", verdict_name(opinion.judgement.verdict));
  const int columns = terminal_width(stdout);
  for (const std::string& reason : opinion.judgement.reasons) fmt::print("{}", wrapped("  - ", reason, columns));
  fmt::print("\np-value of draws = posterior {:.3f}, nested R-hat {:.4f}, drift {:.1f} of {:.1f} standard errors\n",
             f.q.p_value, f.chains.nested_rhat, f.chains.drift, f.chains.drift_limit);
  if (!f.at.empty()) fmt::print("VCD {:.4f} ± {:.4f}\n", f.at.back().vcd.mean, f.at.back().vcd.se);
  for (const std::string& note : opinion.judgement.notes) fmt::print("{}", wrapped("note: ", note, columns));
}

void write_opinion(const std::string& out, const Posterior& posterior, const SecondOpinion& opinion,
                   const std::string& json) {
  const RunFolder folder(out);
  const std::vector<double> unknown(opinion.log_p.size(), std::nan(""));
  const std::string refined = fmt::format("given draws refined by {} HMC steps each", opinion.findings.steps);
  const std::string verdict = "verdict = " + verdict_name(opinion.judgement.verdict);
  write_stan_csv(folder.path() / "draws.csv", {posterior.names(), opinion.natural, opinion.log_p, unknown},
                 {refined, verdict});
  write_stan_csv(folder.path() / "draws_unconstrained.csv",
                 {posterior.coordinate_names(), opinion.z, opinion.log_p, unknown}, {refined, verdict});
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
    print_opinion(opinion);
  if (!request.out.empty() && !request.quiet) fmt::print(stderr, "refined draws: {}\n", request.out);
  end_with(opinion.judgement.verdict);
}

}  // namespace hone
