#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hone/report/run_record.hpp"

namespace hone {

// Table 1 of the paper: the test log-likelihood of two models on two data sets by three objectives, each after
// 400,000 iterations, by the best of three proposals for each datum.
struct PaperCell {
  std::string model, data, objective;  // as a configuration names them
  double log_likelihood;
};
inline constexpr std::int64_t paper_iterations = 400'000;
const std::vector<PaperCell>& paper_cells();

// The cell that a training run is a run of, and in which settings it differs from the paper's: "steps 4, paper 8".
// None where model, data or objective are others, or the configuration cannot be read.
struct PaperMatch {
  const PaperCell* cell;
  std::vector<std::string> differences;
};
std::optional<PaperMatch> match_paper(const RunRecord& run);

}  // namespace hone
