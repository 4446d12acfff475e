#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/report/run_record.hpp"
#include "app/run/paper/paper_figures.hpp"

namespace hone {

// The cell that a training run is a run of, and in which settings it differs from the paper's: "steps 4, paper 8".
// None where model, data or objective are others, or the configuration cannot be read.
struct PaperMatch {
  const PaperCell* cell;
  std::vector<std::string> differences;
};
std::optional<PaperMatch> match_paper(const RunRecord& run);

}  // namespace hone
