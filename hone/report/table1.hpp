#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "hone/run/paper/table1.hpp"

namespace hone {

// What the reports of an experiment need to know beside its cells.
struct ReportContext {
  std::filesystem::path folder;               // the experiment's; reports are written there
  std::map<std::string, std::string> missing;  // data set → why it is not here
  std::string scale;                          // "short"
};

// Reads the finished runs of Table 1; writes table1.md and table1.csv (a line a seed, with times) and returns what
// table1.md says before its provenance, for the terminal.
std::string report_table1(const std::vector<Table1Row>& rows, const ReportContext& context);

// Likewise Figure 2: fig2.md, and figures/fig2.svg with fig2.csv and its gnuplot script.
std::string report_fig2(const std::vector<Fig2Point>& points, const ReportContext& context);

// "-101.32 ± 0.10": mean and standard deviation, the latter where there are several values; "—" where there is none.
std::string mean_and_sd(const Moments& moments, int digits);

// A report with where it comes from at its end, written to folder/name.
void write_report(const ReportContext& context, const std::string& name, const std::string& text);

}  // namespace hone
