#include "app/run/paper/training_runs.hpp"

#include <fmt/format.h>

#include "app/run/evaluate.hpp"
#include "app/run/train.hpp"
#include "hone/base/error.hpp"

namespace hone {

void run_cell(const std::filesystem::path& experiment, const TrainingCell& cell, const TrainingCellOptions& options) {
  const auto stop_if_asked = [&] {
    if (options.stop && *options.stop != 0) throw Stopped();
  };
  std::string failures;
  if (state_of(experiment, cell).iterations_left > 0) {
    std::vector<SeedRun> runs;
    for (const std::uint64_t seed : cell.seeds) runs.push_back({seed, cell.folder(experiment, seed)});
    const TrainOptions train_options{.data_dir = options.data_dir,
                                     .resume = Resume::yes,
                                     .stop = options.stop,
                                     .say = options.say,
                                     .warn = options.warn,
                                     .progress = options.progress};
    for (const TrainOutcome& outcome : train(cell.config, runs, train_options))
      if (!outcome.failure.empty()) failures += fmt::format("{}: {}\n", outcome.run.folder.string(), outcome.failure);
    stop_if_asked();
  }
  for (const std::uint64_t seed : cell.seeds) {
    TrainingCell one = cell;
    one.seeds = {seed};
    const TrainingState state = state_of(experiment, one);
    if (state.iterations_left > 0 || state.evaluations_left == 0) continue;
    const bool annealing_alone = test_results(experiment, cell, seed).has_value();
    const RunEvaluation evaluation =
        evaluate_run(cell.folder(experiment, seed),
                     {.importance = annealing_alone ? std::nullopt : cell.evaluation,
                      .annealing = cell.annealing ? std::optional(AnnealingOptions{*cell.annealing}) : std::nullopt,
                      .points = cell.evaluation->points,
                      .data_dir = options.data_dir,
                      .threads = *cell.config.threads,
                      .stop = options.stop,
                      .say = options.say,
                      .progress = options.progress});
    if (!evaluation.not_written.empty()) throw Error(evaluation.not_written);
    stop_if_asked();
  }
  if (!failures.empty()) throw Error(failures);
}

}  // namespace hone
