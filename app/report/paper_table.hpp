#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/report/run_record.hpp"
#include "app/run/paper/paper_figures.hpp"

namespace hone {

// The paper's cell that a training run belongs to, and the settings that differ from the paper's: "steps 4, paper 8".
// None if model, data or objective are not the paper's, or if the configuration cannot be read.
struct PaperMatch {
  const PaperCell* cell;
  std::vector<std::string> differences;
};
std::optional<PaperMatch> match_paper(const RunRecord& run);

}  // namespace hone
