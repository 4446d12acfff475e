#pragma once

#include <cstdint>
#include <filesystem>

#include "app/run/run_folder.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

// metrics.csv of a training run: one row a report interval.
class MetricsFile {
 public:
  // Rows after iteration `kept` are cut from a file that is there; with 0 it begins anew.
  MetricsFile(const std::filesystem::path& path, std::uint32_t kept);

  void row(std::uint32_t iteration, double seconds, const TrainMetrics& metrics, double step_size);
  void sync() { file_.sync(); }

 private:
  CsvFile file_;
};

// clock.csv of a training run: how long it had trained at every checkpoint, over all its stretches, and how many runs
// trained side by side in the last of them. Checkpoints themselves hold no times, so that their bytes depend on nothing
// but the run.
class ClockFile {
 public:
  // Goes on from the checkpoint of iteration `restored`; with 0 it begins anew.
  ClockFile(const std::filesystem::path& path, std::uint32_t restored);

  double seconds() const { return seconds_; }  // of training up to the checkpoint that the run went on from
  int runs() const { return runs_; }           // side by side, likewise
  void row(std::uint32_t iteration, double seconds, int runs);  // on the disk when it returns

 private:
  CsvFile file_;
  double seconds_ = 0;
  int runs_ = 1;
};

}  // namespace hone
