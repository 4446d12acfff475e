#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/data/load.hpp"
#include "app/run/settings.hpp"
#include "hone/engine/config.hpp"
#include "hone/engine/evaluation.hpp"

namespace hone {

// Evaluations of the first test data on the way of a training, as `hone eval` would make them there.
struct TestConfig {
  std::uint32_t every = 20000;  // iterations; 0: none
  int points = 200;
  int samples = 500;  // draws of each proposal
};

// One fit of a latent-variable model, the paper's section 4.2. What is not set is derived (resolve).
struct TrainRunConfig {
  ModelKind model = ModelKind::vae;
  std::string data = "mnist";
  Binarization binarization = Binarization::automatic;
  std::uint64_t data_seed = 1;
  std::optional<int> latent;
  std::optional<std::vector<int>> hidden;
  std::vector<int> encoder_hidden = {200, 200};
  Activation activation = Activation::relu;
  ObjectiveConfig objective;  // whose baseline is ignored for …
  LatentBaseline baseline = LatentBaseline::local;
  std::uint32_t local_from = 3000;
  KernelConfig kernel;
  int steps = 8;
  Adapt adapt = Adapt::inside;
  std::optional<double> step_size, acceptance;
  int batch = 100;
  std::uint32_t iterations = 400000;
  OptimizerKind optimizer = OptimizerKind::rmsprop;
  double rate_mean = 5e-4, rate_scale = 2.5e-4, rate_model = 5e-4, rate_decay = 0.9;
  std::uint32_t decay_every = 15000;
  Precision precision = Precision::automatic;
  std::uint64_t seed = 1;
  std::uint32_t report_every = 1000;
  std::uint32_t checkpoint_every = 10000;  // 0: only as the minutes say
  double checkpoint_minutes = 10;          // 0: only as the iterations say; both 0: one at the end
  TestConfig test;
  EngineKind engine = EngineKind::automatic;
  std::optional<int> threads;
};

// Every setting of a run with its key, its help and what it takes. A copy of the configuration has its own settings.
Settings train_settings(TrainRunConfig& config);

// Derives what is not set; an impossible combination is a KeyError.
void resolve(TrainRunConfig& config);

// Keys with other values than their defaults that do nothing under this objective. Configurations that several
// objectives share carry them along, so they are no error.
std::vector<std::string> idle_keys(const TrainRunConfig& config);

// Of a resolved configuration:
TrainConfig engine_config(const TrainRunConfig& config);
EvaluationConfig test_evaluation(const TrainRunConfig& config, const DataSet& test);
DataRequest data_request(const TrainRunConfig& config, const std::filesystem::path& data_dir);

// Key → value of everything that defines the model and its training, so that with other values it would be another one.
// The rest (iterations, intervals, engine, threads) may change when a run is taken up again.
std::map<std::string, std::string> identity_of(const TrainRunConfig& config);

}  // namespace hone
