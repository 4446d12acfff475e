#pragma once

#include <optional>
#include <string>

#include "app/run/checkpoint.hpp"
#include "app/run/event_file.hpp"
#include "app/run/metrics_file.hpp"
#include "app/run/run_folder.hpp"
#include "app/run/train.hpp"

namespace hone {

// The configuration in a run folder, with `threads` in place of the run's own number, and another engine if one is
// given.
TrainRunConfig read_train_config(const std::filesystem::path& path, int threads,
                                 std::optional<EngineKind> engine = std::nullopt);

// What defines a run: its configuration, and the data that this named on this machine.
std::map<std::string, std::string> identity_of(const TrainRunConfig& config, const DataSet& train);

// The facts on the data that a checkpoint of such a run holds.
DataFacts facts_of(const TrainRunConfig& config, const DataSplits& data);

// Keeps the counters and the folder of one run. An engine does the work and tells the record.
class TrainRecord {
 public:
  // Takes a resolved configuration and finds the checkpoint to continue from; writes nothing. Throws InputError if the
  // folder cannot be used. `data` and `options` must outlive the record.
  TrainRecord(const TrainRunConfig& config, const DataSplits& data, std::filesystem::path folder,
              const TrainOptions& options);

  std::uint64_t seed() const { return config_.train.seed; }
  std::uint32_t iteration() const { return checkpoint_.state.iteration; }
  bool finished() const { return iteration() == config_.iterations; }
  bool done() const { return finished() || stopped_early(); }
  const TrainState& state() const { return checkpoint_.state; }                   // that an engine continues from
  const std::string& checkpoint() const { return good_; }                         // the last good one, in words
  const TrainMetrics& interval() const { return checkpoint_.counters.interval; }  // since the last report
  TrainMetrics& interval() { return checkpoint_.counters.interval; }

  void log_to(std::filesystem::path folder) { tensorboard_ = std::move(folder); }  // event files, from open() on
  void open();  // the folder, config.toml and the CSV files; once, before the functions below
  bool is_open() const { return folder_.has_value(); }

  void runs_on(std::string device) { device_ = std::move(device); }  // as Engine::device
  // After `seconds` more of training, with `side_by_side` runs in the group.
  void advance(std::uint32_t iteration, double step_size, double seconds, int side_by_side);
  void report();                                // writes a row of metrics.csv
  void save(TrainState state);                  // writes a checkpoint
  bool test_due() const;                        // whether test data are still to be evaluated at this iteration
  void test(const EvaluationSummary& summary);  // writes a row of test_log_likelihood.csv
  bool validation_due() const;                  // the same for validation data
  void validated(const EvaluationSummary& summary, TrainState state);    // writes a row, and best.safetensors
  void hold(TrainState state) { checkpoint_.state = std::move(state); }  // until an engine continues from it

  // Writes the last row, the checkpoint, the pictures (if there is a state) and summary.json. Does nothing the second
  // time.
  void close(std::optional<TrainState> state);

  TrainSummary summary() const;

 private:
  RunCounters& counters() { return checkpoint_.counters; }
  double seconds() const { return (clock_ ? clock_->seconds() : 0) + trained_seconds_; }
  void say(const std::string& text) const;
  void warn(const std::string& text) const;
  void watch(TrainHealth& health) const;
  bool stopped_early() const;
  void look_at_validation();
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
  std::filesystem::path tensorboard_;
  std::optional<EventFile> events_;
  std::optional<BestSoFar> best_;
  TrainHealth health_;
  std::uint32_t started_at_ = 0, saved_at_ = 0;
  double trained_seconds_ = 0;
  int side_by_side_ = 1;
  std::string device_, good_ = "none yet";
  bool damaged_ = false, closed_ = false;
};

}  // namespace hone
