#pragma once

#include <string>
#include <vector>

#include "app/report/training_results.hpp"
#include "app/run/paper/best.hpp"

namespace hone {

// Reads the finished runs of the recipe; writes best.md and best.csv (one line per seed). Returns the text of best.md
// without its provenance, for the terminal.
std::string report_best(const std::vector<BestRow>& rows, const ReportContext& context);

}  // namespace hone
