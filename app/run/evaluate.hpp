#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "app/run/progress.hpp"
#include "hone/engine/evaluation.hpp"

namespace hone {

// Annealed importance sampling beside, or in place of, importance sampling.
struct AnnealingOptions {
  AnnealingConfig config;
  int check = 0;  // data to simulate and to anneal in both directions; 0: no such check
};

struct EvaluateOptions {
  std::optional<EvaluationConfig> importance = EvaluationConfig();  // none: no importance sampling
  std::optional<AnnealingOptions> annealing;                        // none: no annealing
  std::optional<int> points;                                        // only the first so many data; none: all
  std::string split = "test";                                       // train, validation or test
  std::filesystem::path data_dir = {};
  int threads = 1;
  const std::atomic<int>* stop = nullptr;  // not 0: ends by a Stopped, and nothing is written
  std::function<void(const std::string&)> say = {};
  ProgressStyle progress = ProgressStyle::quiet;
};

// Bounds on the mean log-likelihood of data that the model itself made: log p lies between them, so their gap is more
// than what annealing with these settings misses.
struct AnnealingCheck {
  int points = 0;
  Estimate lower, upper, gap;
};

struct RunAnnealing {
  AnnealingConfig config;
  AnnealingSummary summary;
  double seconds = 0;  // of the data themselves, the check left out
  std::optional<AnnealingCheck> check;
};

struct RunEvaluation {
  std::string model, data, binarization, objective, split;
  std::uint32_t iteration = 0;  // that the model was trained up to
  int points = 0;
  std::optional<EvaluationConfig> config;
  std::optional<EvaluationSummary> summary;  // by importance sampling, where asked for
  std::optional<RunAnnealing> annealing;     // where asked for
  std::string json;  // what summary.json has now as test_log_likelihood: these figures, and those that it kept
};

// Evaluates the model of a run folder and adds the figures to its summary.json, whose other entries stay; so do figures
// of the same split and the same model that were not asked for anew. Importance sampling of test data adds a row to
// test_log_likelihood.csv. Bad input is an InputError.
RunEvaluation evaluate_run(const std::filesystem::path& folder, const EvaluateOptions& options);

}  // namespace hone
