#include "app/run/test_curve.hpp"

#include <fmt/format.h>

#include <sstream>

#include "app/run/run_folder.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& folder) { return folder / "test_log_likelihood.csv"; }

CsvFile rows_up_to(const fs::path& folder, std::uint32_t iteration) {
  return {file_of(folder), "iteration,points,samples,mixture,mixture_se,best,best_se", iteration};
}

}  // namespace

void add_test_row(const fs::path& folder, std::uint32_t iteration, const EvaluationConfig& config,
                  const EvaluationSummary& summary) {
  CsvFile file = rows_up_to(folder, iteration);
  const EvaluationSummary& s = summary;
  file.row(fmt::format("{},{},{},{:.8g},{:.3g},{:.8g},{:.3g}", iteration, s.points, config.samples, s.mixture.mean,
                       s.mixture.se, s.best.mean, s.best.se));
  file.sync();
}

bool has_test_row(const fs::path& folder, std::uint32_t iteration, int points, int samples) {
  if (!fs::exists(file_of(folder))) return false;
  std::istringstream lines(read_file(file_of(folder)));
  const std::string start = fmt::format("{},{},{},", iteration, points, samples);
  for (std::string line; std::getline(lines, line) && !lines.eof();)  // a crash may have cut off the last row
    if (line.starts_with(start)) return true;
  return false;
}

void cut_test_rows(const fs::path& folder, std::uint32_t iteration) {
  if (fs::exists(file_of(folder))) rows_up_to(folder, iteration);
}

}  // namespace hone
