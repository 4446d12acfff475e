#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/run/checkpoint.hpp"
#include "app/run/progress.hpp"
#include "app/run/train_config.hpp"
#include "hone/base/statistics.hpp"

namespace hone {

enum class Resume { no, yes };

struct TrainOptions {
  std::filesystem::path data_dir = {};  // looked at first for data, unless empty
  Resume resume = Resume::no;
  int side_by_side = 0;                              // so many runs at a time; 0: as many as suits the engine
  const std::atomic<int>* stop = nullptr;            // not 0: end after the iterations under way
  std::function<void(const std::string&)> say = {};  // hears what a person should know
  ProgressStyle progress = ProgressStyle::quiet;
};

// What summary.json of a training run holds.
struct TrainSummary {
  std::string model, data, binarization, objective, kernel, precision, engine;
  double alpha = 1;
  int latent = 0, steps = 0, leapfrog = 0, batch = 0, threads = 1;
  std::uint64_t seed = 0;
  std::uint32_t iterations = 0;  // made
  bool finished = false;         // as many as the configuration asks for
  double seconds = 0;            // of training, over all stretches of a run that was stopped and resumed
  double us_per_iteration = 0;   // of them all; NaN where there are none
  int runs_side_by_side = 1;     // that made each iteration in this time, in the last stretch
  Estimate elbo, vcd;            // over the last report interval; vcd is NaN where nothing is refined
  double acceptance = 0, step_size = 0;
  std::int64_t rejected_nonfinite = 0, dropped_draws = 0;
  int training_data = 0;  // how many
  std::string device;     // of the engine, in words; empty: the machine's processor

  std::string to_json() const;
};

// Whether refined draws left q so far behind that it hardly follows. Where a training comes out well the VCD is smaller
// than the ELBO's size; where deviations of q collapsed, it is many times that (docs/reproduction.md).
bool q_is_lost(double elbo, double vcd);

// One of some runs that differ by their seeds.
struct SeedRun {
  std::uint64_t seed = 1;
  std::filesystem::path folder;
};

struct TrainOutcome {
  SeedRun run;
  TrainSummary summary;
  std::string failure;  // what ended the run, and the last good checkpoint; empty: nothing did
};

// Trains runs of one configuration, whose own seed is not used, and keeps a run folder of each: config.toml,
// metrics.csv, summary.json, checkpoints and, where data are images, pictures (train_pictures.hpp). An engine that can
// trains them side by side, another one after the other; on the cpu each has the bits that it would have alone. Bad
// input is an InputError (a KeyError where it is about one key), and nothing is written. A parameter that is no longer
// finite, or a disk that is full, ends that run, and the others go on. With Resume::yes every run goes on from its own
// checkpoint; those that are behind catch up first.
std::vector<TrainOutcome> train(const TrainRunConfig& config, const std::vector<SeedRun>& runs,
                                const TrainOptions& options);

// Trains one run, with the configuration's own seed. What ends it is an Error that names the last good checkpoint.
TrainSummary train(const TrainRunConfig& config, const std::filesystem::path& folder, const TrainOptions& options);

// A run folder's model as it was trained last, with its data.
struct TrainedModel {
  TrainRunConfig config;
  DataSplits data;
  std::unique_ptr<Engine> engine;
};

// `threads` is used instead of the run's own number. InputError where the folder is no run or has no good checkpoint.
std::unique_ptr<TrainedModel> load_model(const std::filesystem::path& folder, const std::filesystem::path& data_dir,
                                         int threads, const std::function<void(const std::string&)>& say);

}  // namespace hone
