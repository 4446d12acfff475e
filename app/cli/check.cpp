#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "app/cli/check_draws.hpp"
#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"
#include "app/cli/flags.hpp"
#include "app/cli/judgement.hpp"
#include "app/run/posterior_run.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

struct CheckCommand {
  explicit CheckCommand(CLI::App& command) : settings(table()), flags(command, settings, ConfigFlag::none) {
    command.add_option("run", run, "folder of a 'hone fit'")->option_text("RUN");
    command.add_option("--model", request.config.model, "with --draws: model.stan or model.so")->option_text("MODEL");
    command.add_option("--data", request.config.data, "data of the model")->option_text("data.json");
    command.add_option("--draws", request.draws, "draws of another tool: Stan CSV, plain CSV or ArviZ's NetCDF (.nc)")
        ->option_text("FILE...");
    command.add_option("--scale", scale, "the scale of the draws [natural]")
        ->option_text("natural|unconstrained")
        ->check(one_of({"natural", "unconstrained"}));
    command.add_option("--out", request.out, "write the refined draws into this folder")->option_text("DIR");
    show.add_to(command);
    command.add_flag("--json", request.json, "print the verdict and all numbers behind it as JSON");
    command.add_flag("--quiet", request.quiet, "print only the result");
  }

  // A fit uses the tolerances alone; draws of another tool use all settings.
  Settings table() {
    const std::string derived = "that of the fit; for draws, the default of 'hone fit'";
    Settings s;
    s.add("tolerance_mean", mean, Bounds::positive(), "shift of a mean, in sds, that use-q allows", derived);
    s.add("tolerance_sd", sd, Bounds::positive(), "relative error of an sd that use-q allows", derived);
    s.add("tolerance_vcd", vcd, Bounds::positive(), "VCD per dimension that use-q allows", derived);
    const Settings of_draws = opinion_settings(request.config);
    for (const Settings::Entry& entry : of_draws.entries())
      if (!entry.key.starts_with("tolerance")) s.add(entry);
    return s;
  }

  std::string run, scale;
  ShowFlag show;
  std::optional<double> mean, sd, vcd;
  DrawsRequest request = {.config = with_all_threads()};
  Settings settings;
  SettingFlags flags;

  void check();
  void check_run() const;
  Tolerances tolerances(const Tolerances& usual) const {
    return {mean.value_or(usual.mean), sd.value_or(usual.sd), vcd.value_or(usual.vcd)};
  }
};

void CheckCommand::check() {
  flags.apply();
  if (run.empty() && request.draws.empty()) throw InputError("give the folder of a 'hone fit', or --model and --draws");
  if (!run.empty() && !request.draws.empty()) throw InputError("--draws: a run has its own draws; give one of the two");
  if (!run.empty()) return check_run();
  if (request.config.model.empty()) throw InputError("--draws: give the model that they are from, --model MODEL");
  if (!show.text.empty()) request.show = show.names();
  request.scale = scale == "unconstrained" ? Scale::unconstrained : Scale::natural;
  request.config.check.tolerances = tolerances(request.config.check.tolerances);
  check_draws(request);
}

void CheckCommand::check_run() const {
  for (const Settings::Entry& entry : settings.entries())
    if (!entry.key.starts_with("tolerance") && settings.origin(entry.key) != entry.key)
      throw InputError(fmt::format("{}: is for --draws; the verdict on a run needs no new chains", entry.flag()));
  if (!(request.config.model + request.config.data + request.out + scale).empty())
    throw InputError("--model, --data, --scale and --out are for --draws; a run has its own");
  if (!show.text.empty()) throw InputError("--show: is for --draws; 'hone summary RUN' shows the table of a run");
  const StoredFindings stored = read_findings(run);
  const Tolerances used = tolerances(stored.tolerances);
  const Judgement judgement = judge(stored.findings, used);
  if (request.json)
    fmt::print("{}", judgement_json(judgement, stored.findings, used));
  else
    print_judgement(judgement, stored.findings);
  end_with(judgement.verdict);
}

// The ratios are corrected for the extremes that chance produces. If that takes them past 1, q is too narrow or too
// wide in no direction, and there is nothing to print.
std::string worst_direction(const Findings& f) {
  if (f.q.narrowest.empty()) return "";
  const double narrow = std::min(1.0, f.q.narrowest.front().sd_ratio);
  const double wide = std::max(1.0, f.q.widest.front().sd_ratio);
  if (narrow == 1 && wide == 1) return "";
  const Direction& worst = 1 / narrow > wide ? f.q.narrowest.front() : f.q.widest.front();
  std::vector<std::size_t> order(worst.vector.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(
      order, [&](std::size_t a, std::size_t b) { return std::abs(worst.vector[a]) > std::abs(worst.vector[b]); });
  std::string text = fmt::format("{:.2f} times the refined sd (chance removed) along", worst.sd_ratio);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i)
    text += fmt::format(" {:+.2f} {}", worst.vector[order[i]], f.coordinate_names[order[i]]);
  return text + (order.size() > 3 ? " …" : "");
}

}  // namespace

void print_judgement(const Judgement& judgement, const Findings& f) {
  const int width = terminal_width(stdout);
  const auto say = [width](const std::string& first, const std::string& text) {
    fmt::print("{}", wrapped(first, text, width));
  };
  fmt::print("verdict: {}\n", name_of(judgement.verdict));
  for (const std::string& reason : judgement.reasons) say("  - ", reason);
  const ChainChecks& c = f.chains;
  fmt::print("\nrefined draws\n");
  say("  ",
      fmt::format("nested R-hat {:.4f} over {} super-chains, drift {:.1f} of {:.1f} standard errors allowed, {:.0f} "
                  "effective draws for means, {:.0f} for tails, acceptance {:.2f}, {} of {} trajectories diverged, "
                  "BFMI {:.2f}",
                  c.nested_rhat, c.super_chains, c.drift, c.drift_limit, c.effective, c.tail_effective, c.acceptance,
                  c.divergences, c.proposals, c.bfmi));
  const bool narrow = width < 73;  // the last two columns are left out where the terminal has no room for them
  fmt::print("q against them\n  {:>5}{:>11}{:>9}{:>11}", "t", "VCD", "± se", "acceptance");
  fmt::print("{}\n", narrow ? "" : fmt::format("{:>13}{:>22}", "squared jump", "correlation of log p"));
  for (const PairsAt& at : f.at) {
    fmt::print("  {:>5}{:>11.4f}{:>9.4f}{:>11.2f}", at.steps, at.vcd.mean, at.vcd.se, at.acceptance);
    fmt::print("{}\n", narrow ? "" : fmt::format("{:>13.2f}{:>22.2f}", at.jump, at.correlation));
  }
  fmt::print("  {:>5}{:>11.4f}{:>9.4f}\n", "limit", f.vcd.mean, f.vcd.se);
  fmt::print("  {}, p-value of q = p {:.3f}\n",
             std::isinf(f.q.k_hat) ? "weights nearly constant" : fmt::format("k-hat {:.2f}", f.q.k_hat), f.q.p_value);
  const std::string worst = worst_direction(f);
  if (!worst.empty()) say("  ", "worst direction: q's sd is " + worst);
  for (std::size_t k = 0; k < f.q.mode_mass.size(); ++k)
    say("  ", fmt::format("mode {}: mass {:.3f} by importance weights, {:.3f} in q", k + 1, f.q.mode_mass[k],
                          f.q.q_weight[k]));
  for (const std::string& note : judgement.notes) say("note: ", note);
}

void add_check_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "check",
      "Judge a fit again, or anyone's draws: use-q or use-draws (exit code 0), use-refined (10) or trust-neither (11)");
  command->footer("Example: hone check --model schools.stan --data schools.json --draws advi.csv --out repaired");
  const auto state = std::make_shared<CheckCommand>(*command);
  command->callback([state] { state->check(); });
}

}  // namespace hone
