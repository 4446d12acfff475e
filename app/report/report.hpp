#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hone {

// What `hone report` does: reads run folders, draws their figures, and writes one page on them.
struct ReportRequest {
  std::vector<std::filesystem::path> folders;  // of runs, or of experiments with cells
  std::filesystem::path out = {};              // empty: FOLDER/report.html of one, report.html here of several
};

struct ReportResult {
  std::filesystem::path page;
  int runs = 0;                     // that it tells of
  std::vector<std::string> faults;  // "FOLDER: what is wrong": in the page too
};

// Figures of one run are in its own folder, those of several beside the page in NAME_figures (also where a run folder
// cannot be written). InputError, with all reasons, where none of the folders can be reported on: nothing is written
// then.
ReportResult write_report(const ReportRequest& request);

}  // namespace hone
