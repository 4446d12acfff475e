#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "app/run/checkpoint.hpp"
#include "app/run/progress.hpp"
#include "hone/engine/evaluation.hpp"

namespace hone {

class Lead;  // hone/engine/lead.hpp

// Annealed importance sampling, in addition to or instead of importance sampling.
struct AnnealingOptions {
  AnnealingConfig config;
  int check = 0;  // data to simulate and anneal in both directions; 0: none
};

struct EvaluateOptions {
  std::optional<EvaluationConfig> importance = EvaluationConfig();  // none: no importance sampling
  std::optional<AnnealingOptions> annealing;                        // none: no annealing
  std::optional<int> points;                                        // how many data, from the first on; none: all
  WhichModel which = WhichModel::newest;
  std::string split = "test";  // train, validation or test
  std::filesystem::path data_dir = {};
  int threads = 1;
  Lead* lead = nullptr;                    // of the ranks that share the work
  const std::atomic<int>* stop = nullptr;  // not 0: throws Stopped and writes nothing
  std::function<void(const std::string&)> say = {};
  std::function<void(const std::string&)> warn = {};  // also if quiet; none: say
  ProgressStyle progress = ProgressStyle::quiet;
};

// Bounds on the mean log-likelihood of data simulated from the model itself. log p lies between them, so annealing with
// these settings misses less than their gap.
struct AnnealingCheck {
  int points = 0;
  Estimate lower, upper, gap;
};

struct RunAnnealing {
  AnnealingConfig config;
  AnnealingSummary summary;
  double seconds = 0;  // without the check
  std::optional<AnnealingCheck> check;
};

struct RunEvaluation {
  std::string model, data, binarization, objective, split;
  std::uint32_t iteration = 0;  // iterations of training
  int points = 0;
  std::optional<EvaluationConfig> config;
  std::optional<EvaluationSummary> summary;  // by importance sampling, if requested
  std::optional<RunAnnealing> annealing;     // if requested
  std::string json;         // the entry test_log_likelihood of summary.json: these results, and older ones that it kept
  std::string not_written;  // why the folder did not take the results; empty: it did
};

// Evaluates the model of a run folder and adds the results to its summary.json. Other entries stay, and so do results
// of the same split and model that were not requested again. Importance sampling of test data adds a row to
// test_log_likelihood.csv. Results of the best model by validation data have entries and names of their own, "best_…".
// Throws InputError for bad input.
RunEvaluation evaluate_run(const std::filesystem::path& folder, const EvaluateOptions& options);

}  // namespace hone
