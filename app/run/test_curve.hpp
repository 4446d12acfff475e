#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "hone/engine/evaluation.hpp"

namespace hone {

// test_log_likelihood.csv of a run folder: one row per evaluation of test data by importance sampling, made by
// `hone eval` or during training. A report draws it as a learning curve. validation_log_likelihood.csv is the same for
// validation data, made during training only.
enum class CurveOf { test, validation };

// The row is on disk when this returns. Rows of later iterations are cut: their model no longer exists.
void add_test_row(const std::filesystem::path& folder, std::uint32_t iteration, const EvaluationConfig& config,
                  const EvaluationSummary& summary, CurveOf part = CurveOf::test);

// Whether there is a row for this iteration, number of data and number of draws per proposal.
bool has_test_row(const std::filesystem::path& folder, std::uint32_t iteration, int points, int samples,
                  CurveOf part = CurveOf::test);

// The evaluations of validation data up to an iteration: the best one, by the equal mixture of proposals, and how many
// came after it. Rows of other numbers of data or draws do not count.
struct BestSoFar {
  std::uint32_t iteration = 0;
  double value = 0;
  int since = 0;
};
std::optional<BestSoFar> best_so_far(const std::filesystem::path& folder, std::uint32_t iteration, int points,
                                     int samples);

// Cuts the rows after the iteration that a run continues from.
void cut_test_rows(const std::filesystem::path& folder, std::uint32_t iteration);

}  // namespace hone
