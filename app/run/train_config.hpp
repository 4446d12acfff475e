#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/data/binarization.hpp"
#include "app/data/csv_header.hpp"
#include "app/run/methods.hpp"
#include "app/run/settings.hpp"
#include "hone/engine/config.hpp"
#include "hone/engine/evaluation.hpp"

namespace hone {

class DataSet;       // hone/latent/data_set.hpp
struct DataRequest;  // data/load.hpp

// Evaluations of test data during training, as `hone eval` would make them.
struct TestConfig {
  std::uint32_t every = 20000;  // iterations; 0: never
  int points = 200;             // how many test data, from the first on
  int samples = 500;            // draws per proposal
  std::string data = "own";     // the path of a file; own: the test part of the training data
};

// Evaluations of validation data during training, by the same measure. The best model so far is kept, and a training
// that no longer improves may stop.
struct ValidationConfig {
  std::optional<std::uint32_t> every;  // derived
  int points = 200, samples = 500;
  std::string data = "own";  // the path of a file; own: the validation part of the training data
  double split = 0;          // share of the data to hold out as validation data
  int patience = 0;          // evaluations without a new best after which training stops; 0: never
};

// One fit of a latent-variable model. The defaults are the library's (hone/engine/config.hpp).
struct TrainRunConfig {
  TrainConfig train;
  // `resolve` derives these where they are not set, and writes them into `train`: set them here, not there.
  ObjectiveConfig objective{.ramp = default_training_vcd.ramp, .score_bound = default_training_vcd.score_bound};
  KernelConfig kernel;
  AmortizedConfig family;
  std::optional<Density> likelihood;
  std::optional<int> categories, latent, batch;  // a batch that is not set has all data if there are fewer
  std::optional<std::vector<int>> hidden, channels;
  std::optional<double> step_size, acceptance;

  std::string data = "mnist";
  Binarization binarization = Binarization::automatic;
  std::uint64_t data_seed = 1;
  std::optional<std::vector<int>> shape;  // rows, columns (and 3, for colour) of a datum; none: as in the file
  CsvHeader header = CsvHeader::automatic;
  double split = 0;  // share of the data to hold out as test data
  std::uint32_t iterations = 400000;
  std::uint32_t report_every = 1000;
  std::uint32_t checkpoint_every = 10000;  // iterations; 0: only checkpoint_minutes counts
  double checkpoint_minutes = 10;          // 0: only checkpoint_every counts; both 0: one checkpoint, at the end
  TestConfig test;
  ValidationConfig validation;
  std::string labels = "own";  // the path of a file, a column of a .csv file, or own: those of the known data set
  EngineKind engine = EngineKind::automatic;
  std::optional<int> threads;  // also derived
};

// The paper's settings, section 4.2, where those above are the defaults.
TrainRunConfig paper_run_config();

// Every setting of a run: its key, its help and what it accepts. The table refers to `config`, not to copies of it.
Settings train_settings(TrainRunConfig& config);

// Makes paths of data relative to the folder of a configuration file, unless there is nothing.
void relative_to(const std::filesystem::path& folder, TrainRunConfig& config);

// Derives what is not set. Throws KeyError if the combination is impossible.
void resolve(TrainRunConfig& config);

// Keys that were changed from their defaults but have no effect under this objective. This is no error: several
// objectives may share one configuration file.
std::vector<std::string> idle_keys(const TrainRunConfig& config);

// A remark if a run by the VCD ends before its schedule does; otherwise empty.
std::string schedule_note(const TrainRunConfig& config);

// If there is a device that the configuration cannot use: the key and the reason; otherwise empty.
std::string why_not_cuda(const TrainRunConfig& config);

// For resolved configurations:
EvaluationConfig test_evaluation(const TrainRunConfig& config, const DataSet& test);
EvaluationConfig validation_evaluation(const TrainRunConfig& config, const DataSet& validation);
DataRequest data_request(const TrainRunConfig& config, const std::filesystem::path& data_dir);

// Key → value of all settings that define the model and its training. The others (iterations, intervals, engine,
// threads) may change when a run is resumed.
std::map<std::string, std::string> identity_of(const TrainRunConfig& config);
// The keys that checkpoints of earlier versions do not have, with the values that these versions trained by; `stored`
// is what the checkpoint has.
std::map<std::string, std::string> identity_of_earlier_versions(const std::map<std::string, std::string>& stored);

}  // namespace hone
