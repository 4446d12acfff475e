#include "app/run/test_curve.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <sstream>

#include "app/run/run_folder.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& folder, CurveOf part) {
  return folder / (part == CurveOf::test ? "test_log_likelihood.csv" : "validation_log_likelihood.csv");
}

CsvFile rows_up_to(const fs::path& folder, std::uint32_t iteration, CurveOf part) {
  return {file_of(folder, part), "iteration,points,samples,mixture,mixture_se,best,best_se", iteration};
}

}  // namespace

void add_test_row(const fs::path& folder, std::uint32_t iteration, const EvaluationConfig& config,
                  const EvaluationSummary& summary, CurveOf part) {
  CsvFile file = rows_up_to(folder, iteration, part);
  const EvaluationSummary& s = summary;
  file.row(fmt::format("{},{},{},{:.8g},{:.3g},{:.8g},{:.3g}", iteration, s.points, config.samples, s.mixture.mean,
                       s.mixture.se, s.best.mean, s.best.se));
  file.sync();
}

bool has_test_row(const fs::path& folder, std::uint32_t iteration, int points, int samples, CurveOf part) {
  if (!fs::exists(file_of(folder, part))) return false;
  std::istringstream lines(read_file(file_of(folder, part)));
  const std::string start = fmt::format("{},{},{},", iteration, points, samples);
  for (std::string line; std::getline(lines, line) && !lines.eof();)  // a crash may have cut off the last row
    if (line.starts_with(start)) return true;
  return false;
}

void cut_test_rows(const fs::path& folder, std::uint32_t iteration) {
  for (const CurveOf part : {CurveOf::test, CurveOf::validation})
    if (fs::exists(file_of(folder, part))) rows_up_to(folder, iteration, part);
}

std::optional<BestSoFar> best_so_far(const fs::path& folder, std::uint32_t iteration, int points, int samples) {
  const fs::path file = file_of(folder, CurveOf::validation);
  if (!fs::exists(file)) return {};
  std::istringstream lines(read_file(file));
  std::optional<BestSoFar> best;
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    unsigned at = 0;
    int of = 0, draws = 0;
    double value = 0;
    if (std::sscanf(line.c_str(), "%u,%d,%d,%lf", &at, &of, &draws, &value) != 4) continue;
    if (at > iteration || of != points || draws != samples) continue;
    if (!best || value > best->value)
      best = BestSoFar{at, value, 0};
    else
      ++best->since;
  }
  return best;
}

}  // namespace hone
