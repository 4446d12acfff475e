#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "app/cli/commands.hpp"
#include "app/cli/flags.hpp"
#include "app/cli/judgement.hpp"
#include "app/run/posterior_run.hpp"

namespace hone {
namespace {

struct CheckCommand {
  explicit CheckCommand(CLI::App& command) : settings(tolerances()), flags(command, settings, ConfigFlag::none) {
    command.add_option("run", run, "folder of a 'hone fit'")->required()->option_text("RUN");
    command.add_flag("--json", json, "print the verdict and all numbers behind it as JSON");
  }

  Settings tolerances() {
    const std::string derived = "that of the fit";
    Settings s;
    s.add("tolerance_mean", mean, Bounds::positive(), "shift of a mean, in sds, that use-q allows", derived);
    s.add("tolerance_sd", sd, Bounds::positive(), "relative error of an sd that use-q allows", derived);
    s.add("tolerance_vcd", vcd, Bounds::positive(), "VCD per dimension that use-q allows", derived);
    return s;
  }

  std::string run;
  bool json = false;
  std::optional<double> mean, sd, vcd;
  Settings settings;
  SettingFlags flags;

  void check() const;
};

void CheckCommand::check() const {
  flags.apply();
  const StoredFindings stored = read_findings(run);
  const Tolerances tolerances{mean.value_or(stored.tolerances.mean), sd.value_or(stored.tolerances.sd),
                              vcd.value_or(stored.tolerances.vcd)};
  const Judgement judgement = judge(stored.findings, tolerances);
  if (json)
    fmt::print("{}", judgement_json(judgement, stored.findings, tolerances));
  else
    print_judgement(judgement, stored.findings);
  if (judgement.verdict != Verdict::use_q) throw Ended{judgement.verdict == Verdict::use_refined ? 10 : 11};
}

// Without the extremes that chance produces, q may be too narrow or too wide in no direction at all: the corrected
// ratios pass 1. Then there is nothing to say.
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
  fmt::print("verdict: {}\n", name_of(judgement.verdict));
  for (const std::string& reason : judgement.reasons) fmt::print("  - {}\n", reason);
  fmt::print(
      "\nrefined draws: nested R-hat {:.4f} over {} super-chains, drift {:.1f} of {:.1f} standard errors "
      "allowed,\n"
      "  {:.0f} effective draws for means, {:.0f} for tails, acceptance {:.2f}, {} of {} trajectories diverged, BFMI "
      "{:.2f}\n",
      f.chains.nested_rhat, f.chains.super_chains, f.chains.drift, f.chains.drift_limit, f.chains.effective,
      f.chains.tail_effective, f.chains.acceptance, f.chains.divergences, f.chains.proposals, f.chains.bfmi);
  fmt::print("q against them: {:>6}{:>12}{:>10}{:>12}{:>14}{:>22}\n", "t", "VCD", "± se", "acceptance", "squared jump",
             "correlation of log p");
  for (const PairsAt& at : f.at)
    fmt::print("                {:>6}{:>12.4f}{:>10.4f}{:>12.2f}{:>14.2f}{:>22.2f}\n", at.steps, at.vcd.mean, at.vcd.se,
               at.acceptance, at.jump, at.correlation);
  fmt::print("                {:>6}{:>12.4f}{:>10.4f}\n", "limit", f.vcd.mean, f.vcd.se);
  fmt::print("  k-hat {:.2f}, p-value of q = p {:.3f}\n", f.q.k_hat, f.q.p_value);
  const std::string worst = worst_direction(f);
  if (!worst.empty()) fmt::print("  worst direction: q's sd is {}\n", worst);
  for (std::size_t k = 0; k < f.q.mode_mass.size(); ++k)
    fmt::print("  mode {}: mass {:.3f} by importance weights, {:.3f} in q\n", k + 1, f.q.mode_mass[k], f.q.q_weight[k]);
  for (const std::string& note : judgement.notes) fmt::print("note: {}\n", note);
}

void add_check_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("check",
                                             "Judge a fit again: use-q (exit code 0), use-refined (10) or "
                                             "trust-neither (11)");
  const auto state = std::make_shared<CheckCommand>(*command);
  command->callback([state] { state->check(); });
}

}  // namespace hone
