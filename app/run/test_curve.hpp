#pragma once

#include <cstdint>
#include <filesystem>

#include "hone/engine/evaluation.hpp"

namespace hone {

// test_log_likelihood.csv of a run folder: a row for every evaluation of test data by importance sampling, by
// `hone eval` or on the way of a training. A report draws it as a learning curve.

// On the disk when it returns. Rows of later iterations are cut: they are of a model that is no more.
void add_test_row(const std::filesystem::path& folder, std::uint32_t iteration, const EvaluationConfig& config,
                  const EvaluationSummary& summary);

// Whether so many data were evaluated at this iteration with so many draws of each proposal.
bool has_test_row(const std::filesystem::path& folder, std::uint32_t iteration, int points, int samples);

// Cuts the rows after an iteration that a run goes on from.
void cut_test_rows(const std::filesystem::path& folder, std::uint32_t iteration);

}  // namespace hone
