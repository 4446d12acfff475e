#include "app/run/toy.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/flags.hpp"
#include "app/report/contours.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

struct ToyCommand {
  explicit ToyCommand(CLI::App& command) : settings(toy_settings(config)), flags(command, settings) {
    command.add_option("--out", out, "run folder to write [runs/toy-TARGET-FAMILY-OBJECTIVE-seedN]")
        ->option_text("DIR");
    command.add_flag("--no-figure", no_figure, "do not draw figures/contours.svg and .png");
    command.add_flag("--json", json, "print summary.json on stdout instead of the table");
    command.add_flag("--quiet", quiet, "print only the result");
  }

  void run();
  ToyResult fitted(const RunFolder& folder) const;
  void print_table(const ToyResult& result) const;
  void print_places(const RunFolder& folder, bool drawn) const;

  ToyConfig config;
  Settings settings;
  SettingFlags flags;
  std::string out;
  bool no_figure = false, json = false, quiet = false;
  bool is_new = true;  // the folder
};

// Numbers of a fit that diverged have powers of ten, so that columns stay apart.
std::string number(double value) {
  return std::abs(value) < 1e4 ? fmt::format("{:.4f}", value) : fmt::format("{:.4g}", value);
}

std::string row(const std::string& name, const std::vector<double>& values) {
  std::string text = fmt::format("  {:<22}", name);
  for (const double value : values) text += fmt::format(" {:>9}", number(value));
  return text + "\n";
}

void ToyCommand::print_table(const ToyResult& r) const {
  fmt::print("{} target, {} q, {} objective, {} kernel, seed {}\n", r.target, r.family, r.objective, r.kernel, r.seed);
  fmt::print("{}{}", row("mean of q", r.mean), row("sd of q", r.sd));
  for (std::size_t k = 0; k < r.weights.size(); ++k) {
    fmt::print("  component {}, weight {:.4f}\n", k + 1, r.weights[k]);
    fmt::print("{}{}", row("  mean", r.component_means[k]), row("  sd", r.component_sds[k]));
  }
  fmt::print("  {:<22} {:>9} ± {}\n", fmt::format("VCD, t = {}", config.steps), number(r.vcd.mean), number(r.vcd.se));
  fmt::print("  {:<22} {:>9} ± {}\n", "ELBO", number(r.elbo.mean), number(r.elbo.se));
  fmt::print("  {:<22}{:>10.4f} at step size {:.4f}\n", "acceptance", r.acceptance, r.step_size);
  if (r.rejected_nonfinite > 0) fmt::print("  {} proposals were not finite and were rejected\n", r.rejected_nonfinite);
  if (r.dropped_draws > 0) fmt::print("  {} draws of q were outside the support and were left out\n", r.dropped_draws);
  fmt::print("  {} iterations in {} ({} per second)\n", r.iterations, duration_text(r.seconds),
             pace_text(r.iterations_per_second));
}

// If the fit fails, as on a full disk, nothing is left of the folder.
ToyResult ToyCommand::fitted(const RunFolder& folder) const {
  try {
    Progress progress(stderr, Progress::style_for(stderr, quiet), "fit", "iterations", *config.iterations);
    return run_toy(config, &folder, &progress);
  } catch (const std::exception&) {
    folder.clear();
    std::error_code ignored;
    if (is_new) std::filesystem::remove(folder.path(), ignored);
    throw;
  }
}

void ToyCommand::run() {
  flags.apply();
  try {
    resolve(config);
  } catch (const KeyError& error) {
    throw settings.located(error);
  }
  const std::string name = toy_run_name(config);
  const std::filesystem::path path = out.empty() ? free_folder("runs", name) : std::filesystem::path(out);
  std::error_code ignored;
  is_new = !std::filesystem::exists(path, ignored);
  const RunFolder folder(path);
  const ToyResult result = fitted(folder);
  bool drawn = false;
  std::string failure;  // that must not hide the table
  try {
    if (!no_figure) drawn = draw_contours("contours", {{"contours", name, {folder.path()}}}, folder.figures());
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (json)
    fmt::print("{}", result.to_json());
  else
    print_table(result);
  if (!failure.empty()) throw Error("the picture is missing: " + failure);
  if (!quiet) print_places(folder, drawn);
  if (!result.trouble.empty()) throw Error(result.trouble);
}

void ToyCommand::print_places(const RunFolder& folder, bool drawn) const {
  fmt::print(stderr, "run folder: {}\n", folder.path().string());
  if (drawn) fmt::print(stderr, "picture: {}\n", (folder.path() / "figures" / "contours.png").string());
  if (!no_figure && !drawn)
    fmt::print(stderr, "no picture: gnuplot is not installed (Debian: apt-get install gnuplot-nox)\n");
}

}  // namespace

void add_toy_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("toy", "Fit q to one of the paper's two-dimensional toy targets");
  command->footer("Example: hone toy --target banana --objective vcd --steps 5 --seed 3 --out runs/banana");
  const auto state = std::make_shared<ToyCommand>(*command);
  command->callback([state] { state->run(); });
}

}  // namespace hone
