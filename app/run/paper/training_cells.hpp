#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/run/train_config.hpp"
#include "hone/base/statistics.hpp"
#include "hone/engine/evaluation.hpp"

namespace hone {

// One entry of a table: a configuration trained with several seeds, side by side if the engine can, and evaluated if
// requested. Each seed has its own run folder.
struct TrainingCell {
  std::string id;
  TrainRunConfig config;  // resolved, on a known data set; its own seed is not used
  std::vector<std::uint64_t> seeds;
  std::optional<EvaluationConfig> evaluation;
  std::optional<AnnealingConfig> annealing = {};  // in addition to the evaluation

  std::filesystem::path folder(const std::filesystem::path& experiment, std::uint64_t seed) const;
};

// How far a cell has come, according to the summaries of its runs. Throws InputError if a run has other settings or its
// config.toml cannot be read. A summary that is not JSON is written again from the checkpoint.
struct TrainingState {
  std::uint64_t iterations_left = 0;  // over all seeds
  int seeds_begun = 0;
  int evaluations_left = 0;
  int damaged = 0;  // summaries
  bool done() const { return iterations_left == 0 && evaluations_left == 0; }
  std::string text(const TrainingCell& cell) const;  // "done", "to do", "trained 40 %", "damaged", "to be evaluated"
};
TrainingState state_of(const std::filesystem::path& experiment, const TrainingCell& cell);

// The evaluation in a run's summary.json; nothing if it was not made as the cell requests.
struct TestResults {
  Estimate best, mixture;
  double q = 0;                 // by the first proposal, q widened
  std::optional<Estimate> ais;  // annealed importance sampling, if made
  std::string binarization, engine;
  double seconds = 0;  // of training
  int side_by_side = 1;
  bool went_wrong = false;  // by the run's own word
};
std::optional<TestResults> test_results(const std::filesystem::path& experiment, const TrainingCell& cell,
                                        std::uint64_t seed);

}  // namespace hone
