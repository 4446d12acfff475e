// Data of the wrong shape, and data at which the model is not finite.

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/engine/cpu/cpu_engine.hpp"
#include "tests/support/methods.hpp"

namespace hone {
namespace {

TrainConfig small_gaussian() {
  TrainConfig config = TrainConfig::paper();
  config.model = {ModelKind::gaussian_mf, 2, {}, {8}, Activation::relu};
  config.model.initial = InitialWeights::paper;
  config.batch = 10;
  config.precision = Precision::float64;
  return config;
}

DataSet numbers(int size, int dimension, double last) {
  std::vector<double> values;
  for (int i = 0; i < size * dimension; ++i) values.push_back(std::sin(i));
  values.back() = last;
  return DataSet(std::move(values), {1, dimension});
}

TEST(Engine, ADatumWhereTheModelIsNotFiniteLeavesTheGradient) {
  std::vector<double> counts;
  for (int i = 0; i < 80; ++i) counts.push_back(i % 3);
  counts.back() = 1e306;  // the logarithm of its factorial overflows
  const DataSet data(std::move(counts), {1, 4});
  for (const test::SomeObjective& objective : {test::by_kl(), test::by_hoffman(), test::by_vcd()}) {
    TrainConfig config = small_gaussian();
    config.model.kind = ModelKind::poisson_mf;
    config.objective = objective;
    const auto engine = make_cpu_engine(config, data, {});
    TrainMetrics metrics;
    engine->train(20, metrics);
    EXPECT_EQ(metrics.dropped_draws, 10);  // once per epoch of two minibatches
    EXPECT_TRUE(std::isfinite(metrics.elbo.mean()));
  }
}

TEST(Engine, EvaluationRefusesDataOfAnotherShape) {
  const DataSet train = numbers(20, 4, 0);
  const auto engine = make_cpu_engine(small_gaussian(), train, {});
  EXPECT_THROW(engine->evaluate(numbers(5, 6, 0), {}, {}), InputError);
  EvaluationConfig none;
  none.proposals = {false, false, false};
  EXPECT_THROW(engine->evaluate(numbers(5, 4, 0), none, {}), InputError);
}

TEST(Engine, RefusesNetworksThatNoMemoryHolds) {
  TrainConfig config = small_gaussian();
  config.model.encoder_hidden = {100000, 100000};
  EXPECT_THROW(make_cpu_engine(config, numbers(20, 4, 0), {}), InputError);
}

}  // namespace
}  // namespace hone
