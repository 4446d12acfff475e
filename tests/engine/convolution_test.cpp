// Convolutional models: training, the same bits on any number of threads and after a stop, what is refused.

#include <gtest/gtest.h>

#include "hone/base/error.hpp"
#include "hone/engine/engines.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

// Images of 8 × 8 pixels with three channels, each with a square of one colour.
DataSet squares(int count) {
  std::vector<double> values;
  for (int n = 0; n < count; ++n)
    for (int row = 0; row < 8; ++row)
      for (int col = 0; col < 8; ++col)
        for (int k = 0; k < 3; ++k) {
          const bool inside = row / 3 == n % 3 && col / 3 == n / 3 % 3;
          values.push_back(inside && k == n % 2 ? 1.0 : 0.1 * (n % 4));
        }
  return DataSet(values, ImageShape{8, 8, 3});
}

TrainConfig config_of(Density likelihood, const SomeObjective& objective) {
  TrainConfig config;
  config.model = {.latent = 2, .hidden = {6}, .encoder_hidden = {6}, .likelihood = likelihood, .channels = {5, 16}};
  config.objective = objective;
  config.rate_mean = config.rate_scale = config.rate_model = 3e-3;
  config.refine.steps = 2;
  config.batch = 20;
  return config;
}

void expect_same(const TrainState& a, const TrainState& b) {
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (std::size_t i = 0; i < a.arrays.size(); ++i)
    EXPECT_EQ(a.arrays[i].values, b.arrays[i].values) << a.arrays[i].name;
}

TEST(EngineConvolution, LearnsWithTheSameBitsOnAnyNumberOfThreadsAndAfterAStop) {
  const DataSet data = squares(60);
  for (const SomeObjective& objective : {by_kl(), by_vcd()}) {
    const TrainConfig config = config_of(Density::gaussian, objective);
    const auto whole = make_engine(EngineKind::cpu, config, data);
    TrainMetrics first, last;
    whole->train(40, first);
    whole->train(80, last);
    whole->train(10, last = {});
    if (!objective->refines()) {
      EXPECT_GT(last.elbo.mean(), first.elbo.mean() + 20);
    }
    const auto before = make_engine(EngineKind::cpu, config, data, {.threads = 3});
    before->train(40, first);
    const auto after = make_engine(EngineKind::cpu, config, data, {.threads = 2});
    after->restore(before->save());
    after->train(90, first);
    expect_same(whole->save(), after->save());
  }
}

TEST(EngineConvolution, ImpossibleOnesNameTheKey) {
  const auto key = [](const TrainConfig& config, const DataSet& data, EngineKind kind) -> std::string {
    try {
      check(config, kind);
      make_engine(kind, config, data);
    } catch (const KeyError& error) {
      return error.key();
    }
    return "";
  };
  TrainConfig config = config_of(Density::gaussian, by_kl());
  EXPECT_EQ(key(config, squares(60), EngineKind::cpu), "");
  EXPECT_NO_THROW(check(config, EngineKind::cuda));
  EXPECT_EQ(key(config, DataSet(std::vector<double>(60 * 64, 0.5), ImageShape{1, 64}), EngineKind::cpu), "channels");
  config.model.channels = {4, 4, 4, 4};
  EXPECT_EQ(key(config, squares(60), EngineKind::cpu), "channels");
  config.model.channels = {10000, 10000};
  EXPECT_EQ(key(config, squares(60), EngineKind::cpu), "channels");
  config = config_of(Density::bernoulli, by_kl());
  config.precision = Precision::bf16_trajectory;
  EXPECT_EQ(key(config, squares(60), EngineKind::cpu), "precision");
}

}  // namespace
}  // namespace hone::test
