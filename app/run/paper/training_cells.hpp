#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/run/progress.hpp"
#include "app/run/train.hpp"
#include "hone/engine/evaluation.hpp"

namespace hone {

// One setting of a table: a configuration trained with some seeds, side by side where the engine can, and evaluated
// where that is asked for. Every seed has a run folder of its own.
struct TrainingCell {
  std::string id;
  TrainRunConfig config;  // resolved, on a known data set; its own seed is not used
  std::vector<std::uint64_t> seeds;
  std::optional<EvaluationConfig> evaluation;
  std::optional<AnnealingConfig> annealing = {};  // beside the evaluation

  std::filesystem::path folder(const std::filesystem::path& experiment, std::uint64_t seed) const;
};

// How far a cell is. Read from the summaries of its runs; InputError where a run was made with other settings, or where
// its config.toml does not say with which. A summary that is no JSON is made again, from the checkpoint.
struct TrainingState {
  std::uint64_t iterations_left = 0;  // over all seeds
  int seeds_begun = 0;
  int evaluations_left = 0;
  int damaged = 0;  // summaries
  bool done() const { return iterations_left == 0 && evaluations_left == 0; }
  std::string text(const TrainingCell& cell) const;  // "done", "to do", "trained 40 %", "damaged", "to be evaluated"
};
TrainingState state_of(const std::filesystem::path& experiment, const TrainingCell& cell);

struct TrainingCellOptions {
  std::filesystem::path data_dir = {};
  const std::atomic<int>* stop = nullptr;  // not 0: a checkpoint, then Stopped
  std::function<void(const std::string&)> say = {};
  ProgressStyle progress = ProgressStyle::quiet;
};

// Trains and evaluates what is not done yet. Error, naming them all, where runs have failed; the others are done then.
void run_cell(const std::filesystem::path& experiment, const TrainingCell& cell, const TrainingCellOptions& options);

// What a run's summary.json says of its evaluation; nothing where it has not been made as the cell asks.
struct TestFigures {
  Estimate best, mixture;
  std::optional<Estimate> ais;  // annealed importance sampling, where it was made
  std::string binarization, engine;
  double seconds = 0;  // of training
  int side_by_side = 1;
};
std::optional<TestFigures> test_figures(const std::filesystem::path& experiment, const TrainingCell& cell,
                                        std::uint64_t seed);

}  // namespace hone
