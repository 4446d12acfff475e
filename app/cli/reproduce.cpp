#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"
#include "app/cli/experiments.hpp"
#include "app/cli/flags.hpp"
#include "app/cli/ranks.hpp"
#include "app/cli/signals.hpp"
#include "app/report/terminal_text.hpp"
#include "app/run/cell_lock.hpp"
#include "app/run/paper/pace.hpp"
#include "app/run/paper/provenance.hpp"
#include "app/run/paper/training_runs.hpp"
#include "app/run/progress.hpp"
#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"
#include "hone/base/ranks.hpp"

namespace hone {
namespace {

const char* name_of(CellState state) {
  return state == CellState::done ? "done" : state == CellState::damaged ? "damaged, again" : "to do";
}

struct ReproduceCommand {
  ReproduceCommand(CLI::App& command, std::string what);
  void run();

 private:
  void find_data();
  void make_experiments();
  void leave_out_unusable();
  void fail(const std::string& what, const Error& error);
  void end_with_failures() const;
  void list(std::FILE* to, bool every_cell);
  bool anything_left() const;
  std::string under_way() const;
  void note_origin() const;
  void run_cells(const std::vector<Cell>& cells, const std::string& label, int at_a_time);
  void run_trainings(const Experiment& experiment);
  void work();
  void print_reports();
  std::string command_line() const;
  bool wanted(const std::string& name) const { return what == name || (what == "all" && name != "best"); }
  void say(const std::string& text) const {
    if (!quiet) fmt::print(stderr, "{}\n", text);
  }

  std::string what, out = "runs/paper", scale_text = "short", seeds_text, engine_text = "auto", data_dir, pattern;
  int threads = default_threads();
  unsigned stop_after = 0;
  bool dry_run = false, quiet = false;

  Scale scale = Scale::brief;
  std::unique_ptr<DataShelf> shelf;
  std::unique_ptr<Pace> pace;
  std::map<std::string, std::string> missing;
  std::vector<Experiment> experiments;
  std::vector<std::string> failures;
  bool bad_input = false;  // is among them
};

const std::vector<std::pair<std::string, std::string>> experiments_and_help = {
    {"fig1", "Figure 1: Gaussian and two-component q on the toys, by KL and by VCD from the same start"},
    {"table1", "Table 1: test log-likelihood of two models on two data sets by three objectives"},
    {"fig2", "Figure 2: test log-likelihood of the VAE against the HMC steps t"},
    {"fig3", "Figure 3: time per iteration against t, on one CPU thread and on a device"},
    {"claims", "The paper's claims in words, each tested by a small experiment"},
    {"all", "All experiments above"},
    {"best", "The paper's models and data, trained by our best recipe (configs/best)"}};

ReproduceCommand::ReproduceCommand(CLI::App& command, std::string name) : what(std::move(name)) {
  command.add_option("--out", out, "folder of the experiments; rerun to continue [runs/paper]")->option_text("DIR");
  command
      .add_option(
          "--scale", scale_text,
          "smoke: about a minute; short: about half an hour for table1; full: the paper's 400,000 iterations [short]")
      ->option_text("smoke|short|full");
  if (what != "fig3")
    command.add_option("--seeds", seeds_text, "number of seeds of each experiment that uses them [by scale]")
        ->option_text("n");
  if (what != "fig1" && what != "fig3")
    command.add_option("--engine", engine_text, "training engine: auto, cpu or cuda [auto]")->option_text("NAME");
  if (what != "fig1")
    command.add_option("--data-dir", data_dir, "folder with one folder per data set; searched first")
        ->option_text("DIR");
  if (what != "fig3")
    command
        .add_option("--threads", threads,
                    "threads for training and evaluation, and number of toys run at once; results do not depend on it "
                    "[all cores]")
        ->check(integer(1, 1024))
        ->option_text("n");
  command.add_option("--cells", pattern, "only the cells whose names match, such as 'vae-mnist-*'")
      ->option_text("PATTERN");
  command
      .add_option("--stop-after", stop_after,
                  "stop at a checkpoint after this many seconds; the same command continues later")
      ->check(integer(1, 100'000'000))
      ->option_text("SECONDS");
  command.add_flag("--dry-run", dry_run, "list the cells, what is done and how long the rest will take; run nothing");
  command.add_flag("--quiet", quiet, "print only the result");
}

// Finds out which data sets are here. If none of those requested is, there is nothing to do.
void ReproduceCommand::find_data() {
  shelf = std::make_unique<DataShelf>(data_dir);
  bool any = false, needed = false;
  for (const std::string& name : experiment_names()) {
    if (!wanted(name)) continue;
    const auto data = data_of_experiment(name, scale);
    needed = needed || !data.empty();
    any = any || data.empty() || name == "claims";
    for (const std::string& set : data) {
      if (missing.contains(set)) continue;
      if (const std::string why = shelf->missing(set); !why.empty())
        missing[set] = why;
      else
        any = true;
    }
  }
  if (needed && !any) throw InputError(missing.begin()->second);
  for (const auto& [set, why] : missing) say(fmt::format("{}\nSkipping its cells.", why));
}

void ReproduceCommand::make_experiments() {
  TrainRunConfig config;  // its table of settings knows the names of engines
  train_settings(config).set("engine", engine_text, "--engine");
  ExperimentOptions options;
  options.choice = {.scale = scale,
                    .seeds = seeds_text.empty() ? std::vector<std::uint64_t>{} : seeds_of(seeds_text),
                    .engine = config.engine,
                    .threads = threads};
  options.timing = {[this](const std::string& name) -> const DataSplits& { return shelf->get(name); }, &stop_signal,
                    pace.get()};
  options.missing = missing;
  std::size_t cells = 0;
  for (const std::string& name : experiment_names()) {
    if (!wanted(name)) continue;
    experiments.push_back(make_experiment(name, options));
    if (!pattern.empty()) keep_matching(experiments.back(), pattern);
    cells += experiments.back().cells.size() + experiments.back().timed.size() + experiments.back().trainings.size();
  }
  if (!pattern.empty() && cells == 0)
    throw InputError(fmt::format("--cells: no cell matches '{}'{}; --dry-run without --cells lists them", pattern,
                                 missing.empty() ? "" : " among those whose data are available"));
}

// Records a failure; the rest continues.
void ReproduceCommand::fail(const std::string& name, const Error& error) {
  failures.push_back(fmt::format("{}: {}", name, error.what()));
  bad_input = bad_input || dynamic_cast<const InputError*>(&error);
  say(failures.back());
}

void ReproduceCommand::end_with_failures() const {
  if (failures.empty()) return;
  std::string text = "not everything could be done:";
  for (const std::string& failure : failures) text += "\n" + failure;
  if (bad_input) throw InputError(text + "\nremove a damaged folder, and the same command makes it again");
  throw Error(text);
}

// Drops the trainings whose folder is damaged or holds another run.
void ReproduceCommand::leave_out_unusable() {
  const auto unusable = [&](const TrainingCell& cell) {
    try {
      state_of(out, cell);
      return false;
    } catch (const InputError& error) {
      fail(cell.id, error);
      return true;
    }
  };
  for (Experiment& experiment : experiments) std::erase_if(experiment.trainings, unusable);
}

bool ReproduceCommand::anything_left() const {
  for (const Experiment& experiment : experiments) {
    for (const auto* cells : {&experiment.cells, &experiment.timed}) {
      const CellList list(out, *cells);
      for (std::size_t i = 0; i < list.size(); ++i)
        if (!list.is_done(i)) return true;
    }
    for (const TrainingCell& cell : experiment.trainings)
      if (!state_of(out, cell).done()) return true;
  }
  return false;
}

// The cells that other processes have claimed, one per line.
std::string ReproduceCommand::under_way() const {
  std::string text;
  const auto add = [&](const std::string& id) {
    if (const std::string holder = CellLock::holder(lock_of(out, id)); !holder.empty())
      text += fmt::format("{}: under way ({})\n", id, holder);
  };
  for (const Experiment& experiment : experiments) {
    for (const auto* cells : {&experiment.cells, &experiment.timed})
      for (const Cell& cell : *cells)
        if (!is_done(out, cell)) add(cell.id);
    for (const TrainingCell& cell : experiment.trainings)
      if (!state_of(out, cell).done()) add(cell.id);
  }
  return text;
}

// Other processes may write the same file.
void ReproduceCommand::note_origin() const {
  const std::string commit = HONE_COMMIT;
  std::unique_ptr<CellLock> claim;
  for (int i = 0; i < 100 && !(claim = CellLock::take(lock_of(out, "provenance"))); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  note_provenance(out, "hone " HONE_VERSION + (commit.empty() ? "" : ", commit " + commit), command_line());
}

// Prints the cells, how far they are, and about how long the rest will take.
void ReproduceCommand::list(std::FILE* to, bool every_cell) {
  double total = 0;
  for (const Experiment& experiment : experiments) {
    for (const auto* cells : {&experiment.cells, &experiment.timed}) {
      const CellList list(out, *cells);
      const int at_a_time = cells == &experiment.cells ? threads : 1;
      double seconds = 0;
      std::size_t done = 0;
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list.is_done(i))
          ++done;
        else
          seconds += list[i].seconds / at_a_time;
        if (every_cell)
          fmt::print(to, "{:<40}{:<18}{}\n", list[i].id, name_of(list.state(i)),
                     list.is_done(i) ? "" : "about " + duration_text(list[i].seconds));
        if (!every_cell && list.state(i) == CellState::damaged)
          fmt::print(to, "{}: its summary.json is damaged; running it again\n", list.folder_of(i).string());
      }
      if (!every_cell && list.size() > 0)
        fmt::print(to, "{:<40}{:<18}{}\n", fmt::format("{}: {} small cells", experiment.name, list.size()),
                   fmt::format("{} done", done), done < list.size() ? "about " + duration_text(seconds) : "");
      total += seconds;
    }
    for (const TrainingCell& cell : experiment.trainings) {
      const TrainingState state = state_of(out, cell);
      const double seconds = state.done() ? 0 : pace->seconds(cell, state);
      fmt::print(to, "{:<40}{:<18}{}\n",
                 fmt::format("{}, {} seed{}", cell.id, cell.seeds.size(), cell.seeds.size() > 1 ? "s" : ""),
                 state.text(cell), state.done() ? "" : "about " + duration_text(seconds));
      total += seconds;
    }
  }
  fmt::print(to, "left to do: about {} here\n", duration_text(total));
}

void ReproduceCommand::run_cells(const std::vector<Cell>& cells, const std::string& label, int at_a_time) {
  const CellList list(out, cells);
  if (list.size() == 0) return;
  Progress progress(stderr, Progress::style_for(stderr, quiet), label, "cells", static_cast<std::int64_t>(list.size()));
  list.run(at_a_time, progress, &stop_signal);
}

void ReproduceCommand::run_trainings(const Experiment& experiment) {
  for (const TrainingCell& cell : experiment.trainings) {
    if (stop_signal != 0) throw Stopped();
    const auto claim = CellLock::take(lock_of(out, cell.id));
    if (!claim || state_of(out, cell).done()) continue;
    say(fmt::format("{}: {}", experiment.name, cell.id));
    TrainingCellOptions options;
    options.data_dir = data_dir;
    options.stop = &stop_signal;
    options.warn = say_over_progress;
    if (!quiet) options.say = options.warn;
    options.progress = Progress::style_for(stderr, quiet);
    try {
      run_cell(out, cell, options);
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {  // concerns one cell; the others can still be done
      fail(cell.id, error);
    }
  }
}

void ReproduceCommand::work() {
  for (const Experiment& experiment : experiments) {
    run_cells(experiment.cells, experiment.name, threads);
    run_cells(experiment.timed, experiment.name, 1);
    run_trainings(experiment);
  }
}

void ReproduceCommand::print_reports() {
  const ReportContext context{out, missing, name_of(scale)};
  for (const Experiment& experiment : experiments) {
    try {
      const std::string text = experiment.report(context);                // Markdown, for files and other programs
      const bool terminal = isatty(STDOUT_FILENO) && !started_as_rank();  // launchers give ranks terminals of their own
      fmt::print("{}\n", terminal ? terminal_text(text, 100) : text);
    } catch (const InputError& error) {
      fail(experiment.name, error);
    }
  }
}

// The command without its default options, for the provenance.
std::string ReproduceCommand::command_line() const {
  std::string text = fmt::format("hone reproduce {} --scale {}", what, name_of(scale));
  if (!seeds_text.empty()) text += " --seeds " + seeds_text;
  if (engine_text != "auto") text += " --engine " + engine_text;
  if (!pattern.empty()) text += " --cells '" + pattern + "'";
  return text;
}

void ReproduceCommand::run() {
  scale = scale_named(scale_text);
  if (!seeds_text.empty() && seeds_text.find(',') != std::string::npos)
    throw InputError(fmt::format("--seeds: '{}' is not allowed; expected a number of seeds", seeds_text));
  const SignalNote note(stop_after);
  check_experiment_folder(out);
  check_can_make_folder(out);
  if (dry_run || !quiet) pace = std::make_unique<Pace>();
  find_data();
  make_experiments();
  leave_out_unusable();
  if (dry_run) {
    list(stdout, true);
    return end_with_failures();
  }
  if (!quiet) list(stderr, false);
  std::error_code error;
  for (const char* folder : {"cells", "locks"})
    if (!error) std::filesystem::create_directories(std::filesystem::path(out) / folder, error);
  if (error) throw InputError(fmt::format("{}: cannot create this folder: {}", out, error.message()));
  if (anything_left()) note_origin();
  try {
    work();
  } catch (const Stopped&) {
    say(stop_signal == SIGALRM ? "the time is up; the same command continues"
                               : "stopped by a signal; the same command continues");
    throw Ended{128 + stop_signal};
  }
  if (ranks_run_cells) return end_with_failures();
  if (const std::string others = under_way(); !others.empty()) {
    fmt::print(stderr, "{}other processes run the rest; the same command makes the table when they are done\n", others);
    return end_with_failures();
  }
  print_reports();
  end_with_failures();
}

}  // namespace

void add_reproduce_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("reproduce", "Run the paper's experiments");
  command->require_subcommand(1);
  for (const auto& [name, help] : experiments_and_help) {
    CLI::App* one = command->add_subcommand(name, help);
    const auto state = std::make_shared<ReproduceCommand>(*one, name);
    one->callback([state] { state->run(); });
  }
}

}  // namespace hone
