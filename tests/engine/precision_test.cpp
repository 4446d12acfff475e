// The same iteration in another number format and on another number of threads.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "hone/base/error.hpp"
#include "hone/tensor/simd.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

constexpr int pixels = 101, points = 150;

DataSet made_up_data() {
  std::vector<double> values(static_cast<std::size_t>(points) * pixels);
  PhiloxSource(2).uniforms({Purpose::synthesize}, values);
  for (double& x : values) x = x < 0.4;
  return binary_data(values, pixels);
}

TrainConfig config_of(const SomeObjective& objective, Precision precision, ModelKind model = ModelKind::vae) {
  TrainConfig config = TrainConfig::paper();
  config.model = {
      model, 3, model == ModelKind::vae ? std::vector{64, 13} : std::vector<int>{}, {64, 13}, Activation::relu};
  config.model.initial = InitialWeights::paper;
  config.objective = objective;
  config.shared_until = 10;
  config.refine = {.steps = 4, .adapt = Adapt::inside, .step_size = 0.05, .acceptance = 0.9};
  config.batch = 37;
  config.precision = precision;
  return config;
}

const std::vector<SomeObjective> objectives = {by_kl(), by_hoffman(), by_vcd(), by_li2017()};

std::map<std::string, std::vector<double>> first_gradient(const TrainConfig& config, const DataSet& data) {
  std::map<std::string, std::vector<double>> gradient;
  EngineInternals internals;
  internals.observe = [&](const IterationView& view) {
    const std::vector<double> all = widened(view.gradient);
    for (const Tensor& tensor : view.tensors) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
      gradient[tensor.name].assign(from, from + static_cast<std::ptrdiff_t>(tensor.size()));
    }
  };
  TrainMetrics metrics;
  make_cpu_engine(config, data, {}, std::move(internals))->train(1, metrics);
  return gradient;
}

// Within 10⁻⁴ of a tensor's largest gradient. Each product has an error of about 10⁻⁷, and 20
// leapfrog steps add up.
TEST(EnginePrecision, FloatAgainstDouble) {
  const DataSet data = made_up_data();
  std::vector<SomeObjective> all = objectives;
  all.push_back(by_vcd({.ramp = {.from = 0, .until = 4}, .score_bound = 3}));
  for (const ModelKind model : {ModelKind::vae, ModelKind::logistic_mf})
    for (const SomeObjective& objective : all) {
      const auto exact = first_gradient(config_of(objective, Precision::float64, model), data);
      const auto rounded = first_gradient(config_of(objective, Precision::float32, model), data);
      for (const auto& [name, values] : exact) {
        double largest = 0, error = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          largest = std::max(largest, std::abs(values[i]));
          error = std::max(error, std::abs(values[i] - rounded.at(name)[i]));
        }
        EXPECT_LT(error, 1e-4 * largest) << name << ", objective " << objective->name();
      }
    }
}

TrainState trained(TrainConfig config, const DataSet& data, int threads) {
  EngineOptions options;
  options.threads = threads;
  const auto engine = make_cpu_engine(config, data, std::move(options));
  TrainMetrics metrics;
  engine->train(20, metrics);
  return engine->save();
}

TEST(EngineThreads, SameBits) {
  const DataSet data = made_up_data();
  std::vector<Precision> precisions = {Precision::float32, Precision::float64};
  if (supports_bf16()) precisions.push_back(Precision::bf16_trajectory);
  for (const Precision precision : precisions)
    for (const SomeObjective& objective : objectives)
      for (const OptimizerKind optimizer : {OptimizerKind::rmsprop, OptimizerKind::adam}) {
        TrainConfig config = config_of(objective, precision);
        config.optimizer = optimizer;
        const TrainState one = trained(config, data, 1);
        for (const int threads : {2, 3}) {
          expect_same(one, trained(config, data, threads));
        }
      }
}

// Stopped before and after the control variates separate (iteration 10), with either optimizer.
TEST(EngineState, GoesOnAsIfItHadNeverStopped) {
  const DataSet data = made_up_data();
  for (const char* name : {"kl", "hoffman", "vcd", "li2017"})
    for (const OptimizerKind optimizer : {OptimizerKind::rmsprop, OptimizerKind::adam})
      for (const LatentBaseline baseline : {LatentBaseline::local, LatentBaseline::global}) {
        TrainConfig config = config_of(objective_named(name, {.first_term = FirstTerm::score}), Precision::float32);
        config.optimizer = optimizer;
        config.baseline = baseline;
        TrainMetrics metrics;
        const auto whole = make_cpu_engine(config, data, {});
        whole->train(15, metrics);
        const TrainState expected = whole->save();
        for (const std::uint32_t stop : {8u, 10u, 12u}) {
          const auto first = make_cpu_engine(config, data, {}), second = make_cpu_engine(config, data, {});
          first->train(stop, metrics);
          second->restore(first->save());
          second->train(15 - stop, metrics);
          expect_same(expected, second->save());
        }
      }
}

// A state that lacks an array is refused, and the message names the array.
TEST(EngineState, AMissingArrayIsNamed) {
  const DataSet data = made_up_data();
  TrainConfig config = config_of(by_vcd(), Precision::float32);
  config.optimizer = OptimizerKind::adam;
  const auto engine = make_cpu_engine(config, data, {});
  const TrainState whole = engine->save();
  EXPECT_EQ(std::ranges::count(whole.arrays, "baseline.second", &NamedArray::name), 1);
  EXPECT_EQ(std::ranges::count(whole.arrays, "baseline.first", &NamedArray::name), 0);
  for (std::size_t i = 0; i < whole.arrays.size(); ++i) {
    TrainState part = whole;
    part.arrays.erase(part.arrays.begin() + static_cast<std::ptrdiff_t>(i));
    try {
      engine->restore(part);
      ADD_FAILURE() << whole.arrays[i].name;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("'" + whole.arrays[i].name + "'"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace hone::test
