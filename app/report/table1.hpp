#pragma once

#include <string>
#include <vector>

#include "app/report/training_figures.hpp"
#include "app/run/paper/table1.hpp"

namespace hone {

// Reads the finished runs of Table 1; writes table1.md and table1.csv (a line a seed, with times). Returns what
// table1.md says before where it comes from, for the terminal.
std::string report_table1(const std::vector<Table1Row>& rows, const ReportContext& context);

// Likewise Figure 2: fig2.md, and figures/fig2.svg with fig2.csv and its gnuplot script.
std::string report_fig2(const std::vector<Fig2Point>& points, const ReportContext& context);

}  // namespace hone
