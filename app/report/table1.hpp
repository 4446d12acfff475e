#pragma once

#include <string>
#include <vector>

#include "app/report/training_results.hpp"
#include "app/run/paper/table1.hpp"

namespace hone {

// Reads the finished runs of Table 1; writes table1.md and table1.csv (one line per seed, with times). Returns the text
// of table1.md without its provenance, for the terminal.
std::string report_table1(const std::vector<Table1Row>& rows, const ReportContext& context);

// The same for Figure 2: fig2.md, and figures/fig2.svg with fig2.csv and its gnuplot script.
std::string report_fig2(const std::vector<Fig2Point>& points, const ReportContext& context);

}  // namespace hone
