#include "hone/engine/reconstruct.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

constexpr int pixels = 6;

// Two kinds of data that a model of one latent dimension can tell apart.
DataSet two_kinds(int count) {
  std::vector<double> values;
  for (int n = 0; n < count; ++n)
    for (int p = 0; p < pixels; ++p) values.push_back((p < pixels / 2) == (n % 2 == 0));
  return binary_data(values, pixels);
}

TrainConfig small(const SomeObjective& objective) {
  TrainConfig config = TrainConfig::paper();
  config.model = {ModelKind::logistic_mf, 1, {}, {5}, Activation::relu};
  config.model.initial = InitialWeights::paper;
  config.objective = objective;
  config.refine.steps = 4;
  config.batch = 10;
  config.rate_mean = config.rate_scale = config.rate_model = 0.02;
  return config;
}

struct Trained {
  explicit Trained(const TrainConfig& config) : data(two_kinds(40)) {
    const auto engine = make_cpu_engine(config, data, {});
    TrainMetrics metrics;
    engine->train(2000, metrics);
    state = engine->save();
  }
  DataSet data;
  TrainState state;
};

double error_of(const Matrix<double>& found, const Matrix<double>& data) {
  Moments error;
  for (std::size_t i = 0; i < data.view().flat().size(); ++i)
    error.add(std::abs(found.view().flat()[i] - data.view().flat()[i]));
  return error.mean();
}

TEST(Reconstruct, TellsTheDataApart) {
  for (const SomeObjective& objective : {by_kl(), by_hoffman(), by_vcd()}) {
    const TrainConfig config = small(objective);
    const Trained trained(config);
    const Reconstructions made = reconstruct(config, trained.state, trained.data, trained.data, 8);
    for (int n = 0; n < 8; ++n)
      for (int p = 0; p < pixels; ++p) EXPECT_EQ(made.data(p, n), (p < pixels / 2) == (n % 2 == 0));
    EXPECT_LT(error_of(made.from_q, made.data), 0.1);
    EXPECT_LT(error_of(made.refined, made.data), 0.1);
    EXPECT_GT(made.acceptance, 0.5);
    EXPECT_NE(made.from_q(0, 0), made.refined(0, 0));
    // A sample is a mean image of the prior: all of its pixels of one kind agree on which kind it is.
    for (int n = 0; n < 8; ++n) EXPECT_EQ(made.samples(0, n) > 0.5, made.samples(pixels - 1, n) < 0.5);
  }
}

TEST(Reconstruct, IsAFunctionOfItsArguments) {
  const TrainConfig config = small(by_vcd());
  const Trained trained(config);
  const Reconstructions one = reconstruct(config, trained.state, trained.data, trained.data, 8),
                        again = reconstruct(config, trained.state, trained.data, trained.data, 8);
  for (int n = 0; n < 8; ++n)
    for (int p = 0; p < pixels; ++p) {
      EXPECT_EQ(one.refined(p, n), again.refined(p, n));
      EXPECT_EQ(one.samples(p, n), again.samples(p, n));
    }
}

// A Gaussian's mean is linear in z, and the centre that training subtracted is added back.
TEST(Reconstruct, GaussianMeansAreOnTheScaleOfTheData) {
  std::vector<double> values;
  for (int n = 0; n < 30; ++n)
    for (int p = 0; p < pixels; ++p) values.push_back(7 + 0.1 * p + 0.3 * (n % 3 - 1));
  const DataSet data(values, ImageShape{1, pixels});
  TrainConfig config = small(by_kl());
  config.model.kind = ModelKind::gaussian_mf;
  const auto engine = make_cpu_engine(config, data, {});
  TrainMetrics metrics;
  engine->train(2000, metrics);
  const Reconstructions made = reconstruct(config, engine->save(), data, data, 6);
  EXPECT_LT(error_of(made.refined, made.data), 0.1);
  EXPECT_NEAR(made.samples(0, 0), 7, 2);
}

TEST(Reconstruct, RefusesTheStateOfAnotherModel) {
  const TrainConfig config = small(by_vcd());
  const Trained trained(config);
  TrainConfig other = config;
  other.model.latent = 2;
  EXPECT_THROW(reconstruct(other, trained.state, trained.data, trained.data, 2), InputError);
}

}  // namespace
}  // namespace hone::test
