// The learning rates that are applied. Adam's first step has the length of the rate for every parameter with a gradient
// (its moments are g and g² there), so one iteration shows them.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "hone/optim/update.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

constexpr double rate_mean = 3e-3, rate_scale = 2e-3, rate_model = 1e-3;

TrainConfig config_of(Density likelihood) {
  TrainConfig config;
  config.model = {.kind = ModelKind::vae,
                  .latent = 2,
                  .hidden = {3},
                  .encoder_hidden = {4},
                  .activation = Activation::tanh,
                  .likelihood = likelihood};
  config.objective = by_hoffman();
  config.batch = 4;
  config.precision = Precision::float64;
  config.rate_mean = rate_mean;
  config.rate_scale = rate_scale;
  config.rate_model = rate_model;
  return config;
}

// By how much a parameter moves in the first iteration: the largest step of each tensor.
std::map<std::string, double> first_steps(const TrainConfig& config, const DataSet& data) {
  const auto engine = make_cpu_engine(config, data, {});
  const TrainState before = engine->save();
  TrainMetrics metrics;
  engine->train(1, metrics);
  const TrainState after = engine->save();
  std::map<std::string, double> steps;
  for (std::size_t i = 0; i < before.arrays.size(); ++i) {
    if (!is_parameter(before.arrays[i])) continue;
    const auto& from = std::get<std::vector<double>>(before.arrays[i].values);
    const auto& to = std::get<std::vector<double>>(after.arrays[i].values);
    double& largest = steps[before.arrays[i].name];
    for (std::size_t k = 0; k < from.size(); ++k) largest = std::max(largest, std::abs(to[k] - from[k]));
  }
  return steps;
}

double rate_of(const std::string& name) {
  return name.starts_with("decoder.") ? rate_model : name.starts_with("mean.") ? rate_mean : rate_scale;
}

const std::vector<double> counts = {0, 16, 4, 0, 0, 8, 12, 4, 0, 20, 4, 8, 28, 0, 0, 4};  // of four data

TEST(LearningRates, AreThoseOfTheirNetworks) {
  const DataSet bits = binary_data({1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 1, 1}, 4);
  for (const auto& [name, step] : first_steps(config_of(Density::bernoulli), bits))
    EXPECT_NEAR(step / rate_of(name), 1, 1e-4) << name;
}

// Weights that read large numbers start small, and move by smaller steps.
TEST(LearningRates, OfTheFirstLayerFollowTheScaleOfTheData) {
  double squares = 0;
  for (const double x : counts) squares += x * x;
  const double scale = std::sqrt(squares / static_cast<double>(counts.size()));
  ASSERT_GT(scale, 5);
  const DataSet data(counts, ImageShape{1, 4});
  TrainConfig config = config_of(Density::poisson);
  for (const auto& [name, step] : first_steps(config, data)) {
    const bool first = name == "mean.weight[0]" || name == "sd.weight[0]";
    EXPECT_NEAR(step / rate_of(name) * (first ? scale : 1), 1, 1e-4) << name;
  }
  config.model.initial = InitialWeights::paper;  // as the authors have it
  for (const auto& [name, step] : first_steps(config, data)) EXPECT_NEAR(step / rate_of(name), 1, 1e-4) << name;
}

TEST(LearningRates, GrowOverTheWarmUp) {
  TrainConfig config = config_of(Density::poisson);
  config.warmup.until = 5;
  for (const auto& [name, step] : first_steps(config, DataSet(counts, ImageShape{1, 4})))
    if (!name.ends_with("weight[0]")) {
      EXPECT_NEAR(step / rate_of(name), 0.2, 1e-4) << name;
    }
}

}  // namespace
}  // namespace hone::test
