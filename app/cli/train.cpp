#include "app/run/train.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/flags.hpp"
#include "app/cli/ranks.hpp"
#include "app/cli/signals.hpp"
#include "app/run/methods.hpp"
#include "app/run/paper/configs.hpp"
#include "app/run/progress.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

struct TrainCommand {
  explicit TrainCommand(CLI::App& command);
  void apply();
  void note_idle_keys() const;
  void run();
  std::filesystem::path folder() const;
  std::vector<SeedRun> runs() const;
  std::vector<TrainOutcome> trained(const std::vector<SeedRun>& runs) const;
  void print_json(const std::vector<TrainOutcome>& outcomes) const;

  TrainRunConfig config;
  Settings settings = train_settings(config);
  std::string file, out, data_dir, seeds, tensorboard;
  std::vector<std::string> assignments;
  std::vector<std::pair<std::string, std::string>> shortcuts{
      {"engine", ""}, {"threads", ""}, {"iterations", ""}, {"seed", ""}};
  bool resume = false, quiet = false, json = false;
};

std::string key_list(const Settings& settings) {
  std::string text = "Keys of CONFIG.toml and their defaults:\n";
  for (const auto& entry : settings.entries())
    text += fmt::format("  {}\n      {}: {} [{}]\n", entry.key, entry.help, entry.takes, entry.default_text);
  return text +
         "\nExample: hone train configs/paper/lmf-fashion-vcd.toml --set steps=4 --out runs/lmf\n"
         "Several processes share every minibatch, with the same results: mpirun -n 4 hone train … (docs/cluster.md)";
}

TrainCommand::TrainCommand(CLI::App& command) {
  command
      .add_option(
          "config", file,
          "TOML file of settings, or a run's config.toml; configs/best/NAME.toml and configs/paper/NAME.toml are "
          "in hone itself, too")
      ->required()
      ->option_text("CONFIG.toml");
  command.add_option("--set", assignments, "set a key of the configuration, overriding the file; may be repeated")
      ->option_text("key=value")
      ->allow_extra_args(false);
  for (auto& [key, text] : shortcuts)
    command.add_option("--" + key, text, "the same as --set " + key + "=…")->type_name(key == "engine" ? "NAME" : "N");
  command
      .add_option("--seeds", seeds,
                  "several runs with different seeds: their number (seeds 1, 2, …) or a list of seeds; on a device "
                  "they train side by side. Each has its own run folder, DIR/seed-N")
      ->option_text("n | 3,5,8");
  command
      .add_option("--out", out,
                  "run folder [runs/MODEL-DATA-OBJECTIVE-seedN]; with --seeds, the folder of the run "
                  "folders [runs/MODEL-DATA-OBJECTIVE]")
      ->option_text("DIR");
  command.add_flag(
      "--resume", resume,
      "continue the run in the folder, or each run of --seeds, from its checkpoint; start it if there is none");
  command.add_option("--data-dir", data_dir, "folder with one folder per data set; searched first")->option_text("DIR");
  command
      .add_option("--tensorboard", tensorboard,
                  "also write event files for TensorBoard into this folder; with --seeds, one folder per run in it")
      ->option_text("DIR");
  command.add_flag("--quiet", quiet, "print only the result");
  command.add_flag("--json", json, "print summary.json on stdout instead of the table; with --seeds, a list of them");
  command.footer(key_list(settings));
}

void TrainCommand::apply() {
  if (read_config(settings, file) && !quiet)
    say_over_progress(fmt::format("note: {}: there is no such file here; this is the one in hone", file));
  relative_to(std::filesystem::path(file).parent_path(), config);
  for (const std::string& assignment : assignments) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos) throw InputError(fmt::format("--set '{}': expected key=value", assignment));
    const std::string key = assignment.substr(0, equals);
    settings.set(key, assignment.substr(equals + 1), "--set " + key);
  }
  for (const auto& [key, text] : shortcuts) {
    if (key == "seed" && !text.empty() && !seeds.empty())
      throw InputError("--seed and --seeds cannot be combined; --seeds takes a list, such as --seeds 3,5,8");
    if (!text.empty()) settings.set(key, text, "--" + key);
  }
}

void print_trouble(const std::string& what, const TrainSummary& s) {
  const int width = terminal_width(stdout);
  fmt::print("{}{}", wrapped("  ", fmt::format("{}: {}.", what, s.trouble->text()), width),
             wrapped("  ", s.advice, width));
}

void print_table(const TrainSummary& s) {
  fmt::print("{} on {}, {} objective, {} engine, seed {}\n", model_in_words(s.model, s.likelihood), s.data, s.objective,
             s.engine, s.seed);
  if (s.likelihood == "bernoulli") fmt::print("  {:<14}{}\n", "binarization", s.binarization);
  if (!s.note.empty()) fmt::print("{}", wrapped("  note: ", s.note, terminal_width(stdout)));
  const auto row = [](const std::string& name, const Estimate& value, const std::string& rest) {
    const std::string error = std::isnan(value.se) ? "" : fmt::format(" ± {:.3f}", value.se);
    fmt::print("  {:<14}{:>10.3f}{}{}\n", name, value.mean, error, rest);
  };
  row("ELBO", s.elbo, "  over the last report interval");
  if (refines(s.objective)) {
    row(fmt::format("VCD, t = {}", s.steps), s.vcd, "");
    fmt::print("  {:<14}{:>10.3f} at step size {:.4g}\n", "acceptance", s.acceptance, s.step_size);
  }
  if (s.best)
    fmt::print("{}", wrapped(fmt::format("  {:<14}{:>10.3f}  ", "validation", s.best->value),
                             fmt::format("log-likelihood at iteration {}; --best uses that model{}", s.best->iteration,
                                         s.stopped_early ? "; stopped early" : ""),
                             terminal_width(stdout)));
  if (s.trouble) print_trouble("THIS TRAINING WENT WRONG", s);
  if (s.rejected_nonfinite > 0) fmt::print("  {} proposals were not finite and were rejected\n", s.rejected_nonfinite);
  if (s.dropped_draws > 0) fmt::print("  {} draws of q were outside the support and were left out\n", s.dropped_draws);
  const std::string beside =
      s.runs_side_by_side > 1 ? fmt::format(" with {} runs side by side", s.runs_side_by_side) : "";
  fmt::print("  {} iterations in {} ({:.0f} µs each{})\n", s.iterations, duration_text(s.seconds), s.us_per_iteration,
             beside);
}

// One line per run, and mean and standard deviation over the finished runs.
void print_group_table(const std::vector<TrainOutcome>& outcomes) {
  const TrainSummary& first = outcomes.front().summary;
  const bool refined = refines(first.objective);
  fmt::print("{} on {}, {} objective, {} engine, {} seeds\n", model_in_words(first.model, first.likelihood), first.data,
             first.objective, first.engine, outcomes.size());
  if (first.likelihood == "bernoulli") fmt::print("  {:<14}{}\n", "binarization", first.binarization);
  if (!first.note.empty()) fmt::print("{}", wrapped("  note: ", first.note, terminal_width(stdout)));
  fmt::print("  {:>8} {:>13}{} {:>11} {:>13}  {}\n", "seed", "ELBO",
             refined ? fmt::format(" {:>13} {:>11}", "VCD", "acceptance") : "", "iterations", "µs/iteration",
             "side by side");
  Moments elbo, vcd;
  for (const TrainOutcome& outcome : outcomes) {
    const TrainSummary& s = outcome.summary;
    const auto number = [](double value, int digits) {
      return std::isnan(value) ? std::string("-") : fmt::format("{:.{}f}", value, digits);
    };
    fmt::print("  {:>8} {:>13}{} {:>11} {:>13}  {}{}\n", s.seed, number(s.elbo.mean, 3),
               refined ? fmt::format(" {:>13} {:>11}", number(s.vcd.mean, 3), number(s.acceptance, 3)) : "",
               s.iterations, number(s.us_per_iteration, 0), s.runs_side_by_side,
               !outcome.failure.empty() ? "  failed"
               : s.trouble              ? "  went wrong"
               : !s.finished            ? "  not finished"
                                        : "");
    if (!s.finished || !outcome.failure.empty()) continue;
    elbo.add(s.elbo.mean);
    vcd.add(s.vcd.mean);
  }
  for (const TrainOutcome& outcome : outcomes)
    if (const TrainSummary& s = outcome.summary; s.trouble) print_trouble(fmt::format("seed {} WENT WRONG", s.seed), s);
  if (elbo.count() < 2) return;
  fmt::print("  {:>8} {:>13.3f}{}\n", "mean", elbo.mean(), refined ? fmt::format(" {:>13.3f}", vcd.mean()) : "");
  fmt::print("  {:>8} {:>13.3f}{}\n", "sd", elbo.sd(), refined ? fmt::format(" {:>13.3f}", vcd.sd()) : "");
}

void TrainCommand::print_json(const std::vector<TrainOutcome>& outcomes) const {
  if (seeds.empty()) return fmt::print("{}", outcomes.front().summary.to_json());
  std::string text;
  for (const TrainOutcome& outcome : outcomes) text += (text.empty() ? "[" : ",") + outcome.summary.to_json();
  fmt::print("{}]\n", text);
}

std::filesystem::path TrainCommand::folder() const {
  if (!out.empty()) return out;
  const std::string data = std::filesystem::path(config.data).filename().string();
  const std::string likelihood = settings.text("likelihood"), model = settings.text("model");
  const bool said = likelihood == "auto" || likelihood == "bernoulli" || model.ends_with("-mf");
  const std::string name =
      fmt::format("{}{}-{}-{}", model, said ? "" : "-" + likelihood, data, settings.text("objective"));
  return std::filesystem::path("runs") / (seeds.empty() ? fmt::format("{}-seed{}", name, config.train.seed) : name);
}

std::vector<SeedRun> TrainCommand::runs() const {
  if (seeds.empty()) return {{config.train.seed, folder()}};
  std::vector<SeedRun> list;
  for (const std::uint64_t seed : seeds_of(seeds)) list.push_back({seed, folder() / fmt::format("seed-{}", seed)});
  return list;
}

std::vector<TrainOutcome> TrainCommand::trained(const std::vector<SeedRun>& list) const {
  TrainOptions options;
  options.data_dir = data_dir;
  options.tensorboard = tensorboard;
  options.resume = resume ? Resume::yes : Resume::no;
  options.stop = &stop_signal;
  options.warn = say_over_progress;
  options.lead = lead;
  if (!quiet) {
    options.say = options.warn;
    options.progress = Progress::style_for(stderr, false);
  }
  const SignalNote note;
  try {
    return train(config, list, options);
  } catch (const KeyError& error) {
    throw settings.located(error);
  }
}

void TrainCommand::note_idle_keys() const {
  std::string text;
  for (const std::string& key : idle_keys(config)) text += (text.empty() ? "" : "; ") + settings.origin(key);
  if (!text.empty()) fmt::print(stderr, "note: {}: no effect under objective {}\n", text, settings.text("objective"));
  if (const std::string note = schedule_note(config); !note.empty()) say_over_progress("note: " + note);
}

void TrainCommand::run() {
  apply();
  if (!quiet) note_idle_keys();
  const std::vector<TrainOutcome> outcomes = trained(runs());
  std::string failures;
  bool finished = true;
  for (const TrainOutcome& outcome : outcomes) {
    finished = finished && outcome.summary.finished;
    if (outcome.failure.empty()) continue;
    failures +=
        (failures.empty() ? "" : "\n") + (seeds.empty() ? "" : outcome.run.folder.string() + ": ") + outcome.failure;
  }
  if (seeds.empty() && !failures.empty()) throw Error(failures);
  if (json)
    for (const TrainOutcome& outcome : outcomes)
      if (const TrainSummary& s = outcome.summary; s.trouble)
        fmt::print(stderr, "{}: THIS TRAINING WENT WRONG: {}. {}\n", outcome.run.folder.string(), s.trouble->text(),
                   s.advice);
  if (json)
    print_json(outcomes);
  else if (seeds.empty())
    print_table(outcomes.front().summary);
  else
    print_group_table(outcomes);
  if (!failures.empty()) throw Error(failures);
  if (!quiet) fmt::print(stderr, "run folder{}: {}\n", seeds.empty() ? "" : "s in", folder().string());
  if (finished || stop_signal == 0) return;
  if (!quiet) fmt::print(stderr, "stopped by a signal; continue with --resume\n");
  throw Ended{128 + stop_signal};
}

}  // namespace

void add_train_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("train", "Train a latent-variable model from a configuration file");
  const auto state = std::make_shared<TrainCommand>(*command);
  command->callback([state] { state->run(); });
}

}  // namespace hone
