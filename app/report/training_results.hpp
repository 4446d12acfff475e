#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/run/paper/training_cells.hpp"
#include "hone/base/statistics.hpp"

namespace hone {

// What an experiment's report needs besides its cells.
struct ReportContext {
  std::filesystem::path folder;                // the experiment's; reports are written there
  std::map<std::string, std::string> missing;  // data set → why it is missing
  std::string scale;                           // "short"
};

// Writes a report to folder/name, with its provenance at the end.
void write_report(const ReportContext& context, const std::string& name, const std::string& text);

// "-101.32 ± 0.10": mean, and standard deviation if there are several values; "—" if there are none.
std::string mean_and_sd(const Moments& moments, int digits);

// A cell's test log-likelihoods over its seeds.
struct CellResults {
  Moments best, mixture, ais;
  Moments se;  // of `best` over test data
  std::vector<std::pair<std::uint64_t, TestResults>> seeds;
  int unreadable = 0;  // runs whose folder is damaged or holds another run
  int went_wrong = 0;
};
CellResults results_of(const TrainingCell& cell, const ReportContext& context);

// The cells of a table's row that follow the paper's value: ours, difference, mixture, AIS, se, seeds; "no data", "not
// done", "2 of 3" or "2 of 3, cannot be read" if something is missing; "3, 1 went wrong" if a training said so.
std::string result_columns(const TrainingCell& cell, const CellResults& results, std::optional<double> paper,
                           const ReportContext& context);
// The last of these cells: the number of seeds, or what is missing.
std::string seeds_text(const TrainingCell& cell, const CellResults& results, const ReportContext& context);
extern const char* const result_headings;       // headings of these columns: "| ours | …"
extern const char* const result_headings_text;  // what they mean

// Lines of a CSV file, one per seed, that begin with `head`, and the names of the columns after it.
std::string result_lines(const TrainingCell& cell, const CellResults& results, const std::string& head);
extern const char* const result_line_columns;

// A data set's name in a picture: "mnist" → "MNIST", "fashion" → "Fashion-MNIST".
std::string title_of(const std::string& data);

// How the cells were trained and evaluated, and which were left out because their data are missing.
std::string cells_text(const TrainingCell& cell);
std::string missing_text(const ReportContext& context);

}  // namespace hone
