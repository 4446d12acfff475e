#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hone {

// `hone report`: reads run folders, draws their figures, and writes one page about them.
struct ReportRequest {
  std::vector<std::filesystem::path> folders;  // of runs, or of experiments with cells
  std::filesystem::path out = {};              // empty: FOLDER/report.html for one folder, report.html here for several
};

struct ReportResult {
  std::filesystem::path page;
  int runs = 0;                     // that it covers
  std::vector<std::string> faults;  // "FOLDER: what is wrong": in the page too
};

// Figures of one run go into its own folder, those of several into NAME_figures next to the page (so do a single run's,
// if its folder is not writable). If none of the folders can be reported on, throws InputError with all reasons and
// writes nothing.
ReportResult write_report(const ReportRequest& request);

}  // namespace hone
