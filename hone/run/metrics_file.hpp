#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "hone/engine/engine.hpp"
#include "hone/run/run_folder.hpp"

namespace hone {

// metrics.csv of a training run: one row a report interval.
class MetricsFile {
 public:
  // Rows after iteration `kept` are cut from a file that is there; with 0 it begins anew.
  MetricsFile(const std::filesystem::path& path, std::uint32_t kept);

  double seconds() const { return seconds_; }  // of the last row that was kept
  void row(std::uint32_t iteration, double seconds, const TrainMetrics& metrics, double step_size);

 private:
  double seconds_ = 0;
  std::optional<CsvFile> file_;
};

}  // namespace hone
