#include "hone/run/train.hpp"

#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <memory>

#include "hone/base/error.hpp"
#include "hone/cli/commands.hpp"

namespace hone {
namespace {

std::atomic<int> stop_signal = 0;

// While it lives, Ctrl-C and SIGTERM are noted, for the run to end well; a second one ends the program at once.
class SignalNote {
 public:
  SignalNote() {
    struct sigaction action = {};
    action.sa_handler = [](int signal) { stop_signal = signal; };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~SignalNote() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }
  SignalNote(const SignalNote&) = delete;
  SignalNote& operator=(const SignalNote&) = delete;

 private:
  struct sigaction interrupt_ = {}, terminate_ = {};
};

struct TrainCommand {
  explicit TrainCommand(CLI::App& command);
  void apply();
  void run();
  TrainSummary trained(const TrainOptions& options) const;
  void print_table(const TrainSummary& summary) const;

  TrainRunConfig config;
  Settings settings = train_settings(config);
  std::string file, out, data_dir;
  std::vector<std::string> assignments;
  std::vector<std::pair<std::string, std::string>> shortcuts{
      {"engine", ""}, {"threads", ""}, {"iterations", ""}, {"seed", ""}};
  bool resume = false, quiet = false, json = false;
};

std::string key_list(const Settings& settings) {
  std::string text = "Keys of CONFIG.toml, and what they are where it says nothing:\n";
  for (const auto& entry : settings.entries())
    text += fmt::format("  {}\n      {}: {} [{}]\n", entry.key, entry.help, entry.takes, entry.default_text);
  return text + "\nExample: hone train configs/paper/lmf-fashion-vcd.toml --set steps=4 --out runs/lmf";
}

TrainCommand::TrainCommand(CLI::App& command) {
  command.add_option("config", file, "TOML file of settings, such as those in configs/paper, or a run's config.toml")
      ->required()
      ->option_text("CONFIG.toml");
  command.add_option("--set", assignments, "set a key of the configuration; wins over the file; may come several times")
      ->option_text("key=value")
      ->allow_extra_args(false);
  for (auto& [key, text] : shortcuts)
    command.add_option("--" + key, text, "the same as --set " + key + "=…")
        ->type_name(key == "engine" ? "NAME" : "N");
  command.add_option("--out", out, "run folder [runs/MODEL-DATA-OBJECTIVE-seedN]")->option_text("DIR");
  command.add_flag("--resume", resume, "go on with the run in the folder from its checkpoint; with none, start");
  command.add_option("--data-dir", data_dir, "folder that holds one folder a data set; looked at first")
      ->option_text("DIR");
  command.add_flag("--quiet", quiet, "no progress, no remarks");
  command.add_flag("--json", json, "print summary.json on stdout instead of the table");
  command.footer(key_list(settings));
}

void TrainCommand::apply() {
  settings.read_file(file);
  for (const std::string& assignment : assignments) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos) throw InputError(fmt::format("--set '{}': expected key=value", assignment));
    const std::string key = assignment.substr(0, equals);
    settings.set(key, assignment.substr(equals + 1), "--set " + key);
  }
  for (const auto& [key, text] : shortcuts)
    if (!text.empty()) settings.set(key, text, "--" + key);
}

void TrainCommand::print_table(const TrainSummary& s) const {
  fmt::print("{} on {}, {} objective, {} engine, seed {}\n", s.model, s.data, s.objective, s.engine, s.seed);
  fmt::print("  {:<14}{}\n", "binarization", s.binarization);
  const auto row = [](const std::string& name, const Estimate& value, const std::string& rest) {
    const std::string error = std::isnan(value.se) ? "" : fmt::format(" ± {:.3f}", value.se);
    fmt::print("  {:<14}{:>10.3f}{}{}\n", name, value.mean, error, rest);
  };
  row("ELBO", s.elbo, "  over the last report interval");
  if (s.objective != "kl") {
    row(fmt::format("VCD, t = {}", s.steps), s.vcd, "");
    fmt::print("  {:<14}{:>10.3f} at step size {:.4g}\n", "acceptance", s.acceptance, s.step_size);
  }
  if (s.rejected_nonfinite > 0) fmt::print("  {} proposals were not finite and were rejected\n", s.rejected_nonfinite);
  if (s.dropped_draws > 0) fmt::print("  {} draws of q lay outside the support and were left out\n", s.dropped_draws);
  fmt::print("  {} iterations in {} ({:.0f} µs each)\n", s.iterations, duration_text(s.seconds), s.us_per_iteration);
}

TrainSummary TrainCommand::trained(const TrainOptions& options) const {
  const SignalNote note;
  try {
    return train(config, options);
  } catch (const KeyError& error) {
    throw settings.located(error);
  }
}

void TrainCommand::run() {
  apply();
  TrainOptions options;
  options.folder = out;
  if (out.empty()) {
    const std::string data = std::filesystem::path(config.data).filename().string();
    options.folder = std::filesystem::path("runs") / fmt::format("{}-{}-{}-seed{}", settings.text("model"), data,
                                                                 settings.text("objective"), config.seed);
  }
  options.data_dir = data_dir;
  options.resume = resume ? Resume::yes : Resume::no;
  options.stop = &stop_signal;
  if (!quiet) {
    options.say = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
    options.progress = Progress::style_for(stderr, false);
  }
  const TrainSummary summary = trained(options);
  if (json)
    fmt::print("{}", summary.to_json());
  else
    print_table(summary);
  if (!quiet) fmt::print(stderr, "run folder: {}\n", options.folder.string());
  if (summary.finished || stop_signal == 0) return;
  if (!quiet) fmt::print(stderr, "stopped by a signal; --resume goes on\n");
  throw Ended{128 + stop_signal};
}

}  // namespace

void add_train_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("train", "Train a latent-variable model as a configuration says");
  const auto state = std::make_shared<TrainCommand>(*command);
  command->callback([state] { state->run(); });
}

}  // namespace hone
