#pragma once

#include <cstdint>
#include <filesystem>

#include "app/run/run_folder.hpp"
#include "hone/engine/train_state.hpp"

namespace hone {

// metrics.csv of a training run: one row per report interval.
class MetricsFile {
 public:
  // Cuts the rows after iteration `kept` from an existing file; with 0 it starts a new one.
  MetricsFile(const std::filesystem::path& path, std::uint32_t kept);

  void row(std::uint32_t iteration, double seconds, const TrainMetrics& metrics, double step_size);
  void sync() { file_.sync(); }

 private:
  CsvFile file_;
};

// clock.csv of a training run: for each checkpoint, the seconds of training so far, over all stretches, and how many
// runs trained side by side in the last stretch. Checkpoints hold no times, so that their bytes depend only on the run.
class ClockFile {
 public:
  // Continues from the checkpoint of iteration `restored`; with 0 it starts a new file.
  ClockFile(const std::filesystem::path& path, std::uint32_t restored);

  double seconds() const { return seconds_; }  // of training up to the checkpoint that the run continues from
  int runs() const { return runs_; }           // side by side before that checkpoint
  void row(std::uint32_t iteration, double seconds, int runs);  // on disk when it returns

 private:
  CsvFile file_;
  double seconds_ = 0;
  int runs_ = 1;
};

}  // namespace hone
