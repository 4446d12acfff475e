#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "hone/engine/evaluation.hpp"
#include "hone/run/progress.hpp"

namespace hone {

struct EvaluateOptions {
  EvaluationConfig evaluation;
  std::string split = "test";  // train, validation or test
  std::filesystem::path data_dir = {};
  int threads = 1;
  std::function<void(const std::string&)> say = {};
  ProgressStyle progress = ProgressStyle::quiet;
};

struct RunEvaluation {
  std::string model, data, binarization, objective, split;
  std::uint32_t iteration = 0;  // that the model was trained up to
  EvaluationConfig config;
  EvaluationSummary summary;

  std::string to_json() const;  // what summary.json has as test_log_likelihood
};

// Evaluates the model of a run folder and adds the figures to its summary.json, whose other entries stay; of test data
// also a row to its test_log_likelihood.csv. Bad input is an InputError.
RunEvaluation evaluate_run(const std::filesystem::path& folder, const EvaluateOptions& options);

}  // namespace hone
