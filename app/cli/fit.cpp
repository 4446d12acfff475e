#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "app/cli/commands.hpp"
#include "app/cli/flags.hpp"
#include "app/cli/judgement.hpp"
#include "app/cli/signals.hpp"
#include "app/run/posterior_run.hpp"
#include "app/run/progress.hpp"
#include "hone/base/error.hpp"

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
    command.add_flag("--json", json, "print summary.json on stdout instead of the table");
    command.add_flag("--quiet", quiet, "print only the result");
  }

  void run();
  std::filesystem::path folder() const;
  void print_table(const CheckedFit& fit) const;

  PosteriorRunConfig config = defaults();
  Settings settings;
  SettingFlags flags;
  std::string model, data, out, warm_start;
  bool json = false, quiet = false;

  static PosteriorRunConfig defaults() {
    PosteriorRunConfig result;
    result.check.fit.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    return result;
  }
};

std::string cell(double x) { return std::isnan(x) ? fmt::format("{:>11}", "-") : fmt::format("{:>11.4g}", x); }

void FitCommand::print_table(const CheckedFit& fit) const {
  constexpr std::size_t most_rows = 40;
  std::size_t width = 9;
  const std::size_t rows = std::min(most_rows, fit.parameters.size());
  for (std::size_t k = 0; k < rows; ++k) width = std::max(width, fit.parameters[k].name.size());
  fmt::print("{:<{}} {:>11}{:>11}  |{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}{:>8}\n", "", width, "q mean", "q sd", "mean",
             "sd", "mcse", "5%", "50%", "95%", "ESS");
  for (std::size_t k = 0; k < rows; ++k) {
    const ParameterSummary& s = fit.parameters[k];
    fmt::print("{:<{}} {}{}  |{}{}{}{}{}{}{:>8.0f}\n", s.name, width, cell(s.q_mean), cell(s.q_sd), cell(s.mean),
               cell(s.sd), cell(s.mcse), cell(s.q05), cell(s.q50), cell(s.q95), s.effective);
  }
  if (rows < fit.parameters.size()) fmt::print("… {} more in summary.json\n", fit.parameters.size() - rows);
  fmt::print("\nq: {}, by {}; right of the bar: the second half of {} chains of {} HMC steps\n",
             family_name(fit.fit.q.kind), settings.text("objective"), fit.refined.states.chains, fit.refined.steps);
  fmt::print("{} gradients in {}\n\n", fit.gradients, duration_text(fit.seconds));
}

std::filesystem::path FitCommand::folder() const {
  if (!out.empty()) return out;
  const std::string name = std::filesystem::path(config.model).stem().string();
  return free_folder("runs", fmt::format("fit-{}-seed{}", name, config.check.fit.seed));
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
    return open_posterior(config, {{}, say, {}, stop});
  });
  CheckedFit fit;
  {
    const std::int64_t total = config.check.fit.budget.gradients;
    Progress progress(stderr, Progress::style_for(stderr, quiet), "fit", "gradients", std::max<std::int64_t>(1, total));
    fit = fit_and_check(*posterior, config.check, [&](const std::string& text, std::int64_t gradients) {
      progress.update(std::min(gradients, std::max<std::int64_t>(1, total) - 1), text);
    });
  }
  const RunFolder run_folder(folder());  // created only now: a fit that fails leaves nothing behind
  const PosteriorRunFiles files = posterior_run_files(*posterior, fit, config);
  write_posterior_netcdf(run_folder, files, config.data);
  write_posterior_run(run_folder, files);
  if (!warm_start.empty()) write_warm_start_of(warm_start, *posterior, fit, files);
  if (json) {
    fmt::print("{}", fit_summary_json(fit, config));
  } else {
    print_table(fit);
    print_judgement(fit.judgement, fit.findings);
  }
  if (!quiet) fmt::print(stderr, "run folder: {}\n", run_folder.path().string());
}

}  // namespace

void add_fit_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("fit", "Fit q to your own posterior, refine its draws, and judge both");
  command->footer("Example: hone fit eight_schools.stan --data eight_schools.json --out runs/schools");
  const auto state = std::make_shared<FitCommand>(*command);
  command->callback([state] { state->run(); });
}

}  // namespace hone
