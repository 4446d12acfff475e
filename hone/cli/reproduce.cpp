#include <fmt/format.h>

#include <memory>
#include <thread>

#include "hone/cli/commands.hpp"
#include "hone/report/fig1.hpp"
#include "hone/run/fig1.hpp"

namespace hone {
namespace {

struct ReproduceCommand {
  std::string out = "runs/fig1";
  int seeds = 8;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  bool dry_run = false, quiet = false;

  void run() const;
};

void ReproduceCommand::run() const {
  const CellList cells(out, fig1_cells(seeds));
  if (dry_run) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      fmt::print("{:<24}{}\n", cells.folder_of(i).filename().string(), cells.is_done(i) ? "done" : "to do");
    return;
  }
  {
    Progress progress(stderr, Progress::style_for(stderr, quiet), "fig1", "cells", static_cast<std::int64_t>(cells.size()));
    cells.run(threads, progress);
  }
  const Fig1Report report = report_fig1(out, seeds);
  fmt::print("{}", report.text);
  if (report.picture.empty())
    fmt::print("No picture: gnuplot is not installed (Debian: apt-get install gnuplot-nox); run this again then.\n");
  else
    fmt::print("Picture: {}\n", report.picture.string());
}

}  // namespace

void add_reproduce_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("reproduce", "Run an experiment of the paper again");
  command->require_subcommand(1);
  CLI::App* fig1 = command->add_subcommand(
      "fig1", "Figure 1: Gaussian and two-component q on the toys, by KL and by VCD from the same start");
  const auto state = std::make_shared<ReproduceCommand>();
  fig1->add_option("--out", state->out, "folder of the experiment; started again there, it goes on with what is missing")
      ->option_text("DIR [runs/fig1]");
  fig1->add_option("--seeds", state->seeds, "seeds 1 … n of every panel and objective")
      ->check(CLI::Range(1, 10000))
      ->option_text("n [8]");
  fig1->add_option("--threads", state->threads, "cells at a time; results do not depend on it")
      ->check(CLI::Range(1, 1024))
      ->option_text("n [all cores]");
  fig1->add_flag("--dry-run", state->dry_run, "list the cells and what is done already, and stop");
  fig1->add_flag("--quiet", state->quiet, "no progress");
  fig1->callback([state] { state->run(); });
}

}  // namespace hone
