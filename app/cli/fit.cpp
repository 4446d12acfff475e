#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "app/cli/budget_bar.hpp"
#include "app/cli/commands.hpp"
#include "app/cli/flags.hpp"
#include "app/cli/judgement.hpp"
#include "app/cli/ranks.hpp"
#include "app/cli/signals.hpp"
#include "app/run/posterior_run.hpp"
#include "app/run/rank_pace.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"
#include "hone/fit/shared_fit.hpp"

namespace hone {
namespace {

struct FitCommand {
  explicit FitCommand(CLI::App& command) : settings(posterior_run_settings(config)), flags(command, settings) {
    add_model_keys(settings, config);  // after the flags: they are keys of --config only
    command.add_option("model", model, "model.stan, or a library model.so with BridgeStan's interface")
        ->option_text("MODEL");
    command.add_option("--data", data, "data of the model")->option_text("data.json");
    command.add_option("--out", out, "run folder to write [runs/fit-MODEL-seedN]")->option_text("DIR");
    command.add_option("--warm-start-out", warm_start, "write inits and metric for CmdStan into this folder")
        ->option_text("DIR");
    show.add_to(command);
    command.add_flag("--json", json, "print summary.json on stdout instead of the table");
    command.add_flag("--quiet", quiet, "print only the result");
  }

  void run();
  std::filesystem::path folder() const;
  CheckedFit fit_with_progress(const Posterior& posterior);
  void write(const Posterior& posterior, const CheckedFit& fit, const PosteriorRunFiles& files);

  PosteriorRunConfig config = defaults();
  Settings settings;
  SettingFlags flags;
  std::string model, data, out, warm_start;
  ShowFlag show;
  bool json = false, quiet = false;

  static PosteriorRunConfig defaults() {
    PosteriorRunConfig result;
    result.check.fit.threads = default_threads();
    return result;
  }
};

// q after the searches: a table of its means and sds, from some draws.
std::string first_table(const Posterior& posterior, const PosteriorFit& fit, int width) {
  constexpr int draws = 400;
  const FittedQ& q = fit.q;
  const Matrix<double> e = independent_draws(*q.family, draws, PhiloxSource(1));
  std::vector<Moments> moments(posterior.names().size());
  std::vector<double> z(static_cast<std::size_t>(e.rows())), natural(moments.size());
  for (int i = 0; i < draws; ++i) {
    q.whitening.to_z(e.column(i), z);
    try {
      posterior.constrain(z, natural);
    } catch (const Error&) {
      continue;  // outside what the model can compute
    }
    for (std::size_t k = 0; k < natural.size(); ++k) moments[k].add(natural[k]);
  }
  Json summary = {{"parameter_count", posterior.parameter_count()}, {"parameters", Json::object()}};
  const FitGroups groups = fit_groups(posterior.names(), {}, {});
  summary["groups"] = {{"log_likelihood", groups.log_likelihood},
                       {"posterior_predictive", groups.posterior_predictive}};
  for (std::size_t k = 0; k < moments.size(); ++k)
    if (std::isfinite(moments[k].mean()))
      summary["parameters"][posterior.names()[k]] = {{"q_mean", moments[k].mean()}, {"q_sd", moments[k].sd()}};
    else
      summary["parameters"][posterior.names()[k]] = Json::object();
  return text_of(fit_table(summary, {.only_q = true}), width) +
         "preliminary: q as the searches found it, before any chain has run\n";
}

// Runs the fit with a progress bar of its budget. Ctrl-C ends it with the result so far.
CheckedFit FitCommand::fit_with_progress(const Posterior& posterior) {
  const SignalNote note;
  config.check.fit.budget.stop = &stop_asked;
  SharedPosterior* const shared = shared_by_ranks(posterior, config);
  BudgetBar bar(shared ? *shared : posterior, config.check.fit.budget, "fit", quiet);
  if (shared) shared->on_pace([&](const SharedPace& pace) { bar.remark(words(pace)); });  // within fit_and_check
  bar.doing("searching from the starts", 0);
  constexpr double soon = 0.3;  // seconds: a shorter fit shows its final table right away
  config.check.on_starts = [&](const PosteriorFit& fit) {
    if (!quiet && bar.watch().seconds() > soon) bar.remark(first_table(posterior, fit, terminal_width(stderr)));
  };
  CheckedFitConfig check = config.check;
  if (shared) check.fit.threads = 1;  // the threads of all ranks evaluate its batches
  try {
    CheckedFit fit = fit_and_check(
        bar.posterior(), check, [&](const std::string& text, std::int64_t gradients) { bar.doing(text, gradients); },
        shared);
    bar.finish(fit.gradients);
    return fit;
  } catch (const Stopped&) {
    bar.remark("interrupted before the searches had ended: there is nothing to write");
    throw Ended{128 + stop_signal};
  }
}

std::filesystem::path FitCommand::folder() const {
  if (!out.empty()) return out;
  const std::string name = std::filesystem::path(config.model).stem().string();
  return free_folder("runs", fmt::format("fit-{}-seed{}", name, config.check.fit.seed));
}

// Creates the run folder only now, so that a fit that fails leaves nothing behind. If the disk is full, removes it
// again.
void FitCommand::write(const Posterior& posterior, const CheckedFit& fit, const PosteriorRunFiles& files) {
  const std::filesystem::path path = folder();
  std::error_code ignored;
  const bool is_new = !std::filesystem::exists(path, ignored);
  const RunFolder run_folder(path);
  try {
    write_posterior_run(run_folder, files);
  } catch (const std::exception& error) {
    run_folder.clear();
    if (is_new) std::filesystem::remove(path, ignored);
    throw Error(fmt::format("{}; the run folder was {} again", error.what(), is_new ? "removed" : "emptied"));
  }
  write_posterior_netcdf(run_folder, files);
  if (!quiet) fmt::print(stderr, "run folder: {}\n", run_folder.path().string());
  if (!warm_start.empty()) write_warm_start_of(warm_start, posterior, fit, files);
}

void FitCommand::run() {
  flags.apply();
  if (!model.empty() && model != config.model) config.model = model, config.data.clear();  // another model's data
  if (!data.empty()) config.data = data;
  if (config.model.empty()) throw InputError("missing argument: MODEL, or --config FILE with the key 'model'");
  resolve(config);
  if (!warm_start.empty()) check_can_make_folder(warm_start);
  RunFolder::check(folder());
  const auto say = [this](const std::string& text) {
    if (!quiet) fmt::print(stderr, "{}\n", text);
  };
  const std::unique_ptr<Posterior> posterior = until_signal([&](const std::function<bool()>& stop) {
    return open_posterior(config, {.cache = {}, .progress = say, .data = {}, .stop = stop});
  });
  check_shown(posterior->names(), show.values());
  std::vector<DataArray> arrays = data_arrays(config);
  const CheckedFit fit = fit_with_progress(*posterior);
  const PosteriorRunFiles files = posterior_run_files(*posterior, fit, config, std::move(arrays));
  std::string failure;  // why the run folder could not be written: the result is printed anyway
  try {
    write(*posterior, fit, files);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (json) {
    fmt::print("{}", files.summary);
  } else {
    print_fit(parse_json(files.summary), show.values());
    print_judgement(fit.judgement, fit.findings);
  }
  if (!failure.empty()) throw Error(failure);
  if (fit.interrupted) throw Ended{128 + stop_signal};
}

}  // namespace

void add_fit_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("fit", "Fit q to your own posterior, refine its draws, and judge both");
  command->footer(
      "Ctrl-C ends a fit with the result so far and a verdict on it (exit code 130).\n"
      "Example: hone fit eight_schools.stan --data eight_schools.json --out runs/schools");
  const auto state = std::make_shared<FitCommand>(*command);
  command->callback([state] { state->run(); });
}

}  // namespace hone
