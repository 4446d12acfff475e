#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/data/load.hpp"
#include "app/run/checkpoint.hpp"
#include "app/run/progress.hpp"
#include "app/run/test_curve.hpp"
#include "app/run/train_config.hpp"
#include "app/run/train_health.hpp"
#include "hone/base/statistics.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

class Lead;  // hone/engine/lead.hpp

enum class Resume { no, yes };

struct TrainOptions {
  std::filesystem::path data_dir = {};  // searched first for data, unless empty
  Resume resume = Resume::no;
  int side_by_side = 0;                               // runs that train as one group; 0: as many as suit the engine
  const std::atomic<int>* stop = nullptr;             // not 0: end after the current iterations
  std::function<void(const std::string&)> say = {};   // receives remarks for the user
  std::function<void(const std::string&)> warn = {};  // what the user must know, also if quiet; none: say
  ProgressStyle progress = ProgressStyle::quiet;
  std::filesystem::path tensorboard = {};       // a folder for event files; empty: none. Several runs: one folder each
  Lead* lead = nullptr;                         // of the ranks that share the work; none: this process is alone
  std::shared_ptr<const DataSplits> data = {};  // in memory; none: what the configuration names
  // Told of iterations made and asked for, and the figures of now, about ten times per second.
  std::function<void(std::int64_t, std::int64_t, const std::string&)> watch = {};
};

// The contents of a training run's summary.json.
struct TrainSummary {
  std::string model, likelihood, family, data, binarization, objective, kernel, precision, engine;
  double alpha = 1;
  int latent = 0, steps = 0, leapfrog = 0, batch = 0, threads = 1;
  std::uint64_t seed = 0;
  std::uint32_t iterations = 0;   // made
  bool finished = false;          // made as many as the configuration asks for, or stopped early
  bool stopped_early = false;     // because validation data said so
  std::optional<BestSoFar> best;  // by validation data
  double seconds = 0;             // of training, summed over all stretches of a resumed run
  double us_per_iteration = 0;    // mean over all iterations; NaN if there are none
  int runs_side_by_side = 1;      // runs that trained together in the last stretch and share its time
  Estimate elbo, vcd;             // over the last report interval; vcd is NaN if nothing is refined
  double acceptance = 0, step_size = 0;
  std::int64_t rejected_nonfinite = 0, dropped_draws = 0;
  int training_data = 0;           // their number …
  int test_data = 0;               // … and that of the test data
  std::string device;              // of the engine, in words; empty on the cpu
  std::optional<Trouble> trouble;  // over the last report interval
  std::string advice;              // what may help, where there is trouble
  std::string note;                // schedule_note

  std::string to_json() const;
};

// One of several runs that differ in their seeds.
struct SeedRun {
  std::uint64_t seed = 1;
  std::filesystem::path folder;
};

struct TrainOutcome {
  SeedRun run;
  TrainSummary summary;
  std::string failure;  // what ended the run, and the last good checkpoint; empty: nothing did
};

// Trains runs of one configuration, whose own seed is not used. Each run has a folder: config.toml, metrics.csv,
// summary.json, checkpoints and, if the data are images, pictures (train_pictures.hpp). The cuda engine trains the runs
// side by side, the cpu engine one after another; on the cpu each run has the bits that it would have alone. Bad input
// is an InputError (a KeyError if it concerns one key), and then nothing is written. A parameter that is no longer
// finite, or a full disk, ends that run; the others continue. With Resume::yes each run continues from its own
// checkpoint; those that are behind catch up first.
std::vector<TrainOutcome> train(const TrainRunConfig& config, const std::vector<SeedRun>& runs,
                                const TrainOptions& options);

// Trains one run with the configuration's own seed. If it fails, throws an Error that names the last good checkpoint.
TrainSummary train(const TrainRunConfig& config, const std::filesystem::path& folder, const TrainOptions& options);

}  // namespace hone
