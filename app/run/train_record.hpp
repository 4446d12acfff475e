#pragma once

#include <optional>
#include <string>

#include "app/run/checkpoint.hpp"
#include "app/run/metrics_file.hpp"
#include "app/run/run_folder.hpp"
#include "app/run/train.hpp"

namespace hone {

// What a run folder says of a run: its configuration with `threads` instead of the run's own number.
TrainRunConfig read_train_config(const std::filesystem::path& path, int threads);

// What defines a run: its configuration, and the data that this led to on this machine.
std::map<std::string, std::string> identity_of(const TrainRunConfig& config, const DataSet& train);

// The book of one run: what it has counted, and its folder. An engine does the work; the record is told of it.
class TrainRecord {
 public:
  // Of a resolved configuration. Finds the checkpoint to go on from; writes nothing. InputError where the folder cannot
  // be used so. `data` and `options` must outlive the record.
  TrainRecord(const TrainRunConfig& config, const DataSplits& data, std::filesystem::path folder,
              const TrainOptions& options);

  std::uint64_t seed() const { return config_.seed; }
  std::uint32_t iteration() const { return checkpoint_.state.iteration; }
  bool finished() const { return iteration() == config_.iterations; }
  const TrainState& state() const { return checkpoint_.state; }                   // that an engine goes on from
  const std::string& checkpoint() const { return good_; }                         // the last good one, in words
  const TrainMetrics& interval() const { return checkpoint_.counters.interval; }  // since the last report
  TrainMetrics& interval() { return checkpoint_.counters.interval; }

  void open();  // the folder, config.toml and the CSV files; once, before what follows
  bool is_open() const { return folder_.has_value(); }

  void runs_on(std::string device) { device_ = std::move(device); }  // as Engine::device
  // So many seconds of training, of so many runs side by side, have led here.
  void advance(std::uint32_t iteration, double step_size, double seconds, int side_by_side);
  void report();                                // a row of metrics.csv
  void save(TrainState state);                  // a checkpoint
  bool test_due() const;                        // test data are to be evaluated at this iteration, and have not been
  void test(const EvaluationSummary& summary);  // a row of test_log_likelihood.csv
  void hold(TrainState state) { checkpoint_.state = std::move(state); }  // for an engine to go on from

  // The last row, checkpoint and pictures (of the state, where something was trained) and summary.json; the first time
  // only.
  void close(std::optional<TrainState> state);

  TrainSummary summary() const;

 private:
  RunCounters& counters() { return checkpoint_.counters; }
  double seconds() const { return (clock_ ? clock_->seconds() : 0) + trained_seconds_; }
  void say(const std::string& text) const;
  void restore();
  void start_anew() const;
  std::string with_evaluation(const TrainSummary& summary) const;

  TrainRunConfig config_;
  const DataSplits& data_;
  std::filesystem::path path_;
  const TrainOptions& options_;
  Checkpoint checkpoint_;
  std::optional<FolderLock> lock_;
  std::optional<RunFolder> folder_;
  std::optional<MetricsFile> metrics_;
  std::optional<ClockFile> clock_;
  std::uint32_t started_at_ = 0, saved_at_ = 0;
  double trained_seconds_ = 0;
  int side_by_side_ = 1;
  std::string device_, good_ = "none yet";
  bool damaged_ = false, closed_ = false;
};

}  // namespace hone
