// Gaussian matrix factorization, where everything is known exactly: posterior, evidence, and the maximum-likelihood
// weights (probabilistic PCA with a known noise variance).

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/scalar.hpp"
#include "hone/latent/model.hpp"
#include "hone/tensor/symmetric_eigen.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

constexpr int pixels = 8, latent = 2;
constexpr double noise = 0.1;  // its standard deviation in the model

// x = c + Wᵀ z + noise, row after row. A larger W would make the posterior much narrower, and then the size of W
// is learned as slowly as by expectation maximization.
std::vector<double> synthetic(int count, std::uint32_t stream) {
  Matrix<double> z(latent, count), e(pixels, count);
  PhiloxSource(12).normals({Purpose::synthesize, stream, 0}, z.view().flat());
  PhiloxSource(12).normals({Purpose::synthesize, stream, 1}, e.view().flat());
  std::vector<double> values;
  for (int n = 0; n < count; ++n)
    for (int p = 0; p < pixels; ++p)
      values.push_back(0.3 * p + 0.2 * std::sin(p + 1.0) * z(0, n) + 0.12 * std::cos(2.0 * p) * z(1, n) +
                       noise * e(p, n));
  return values;
}

DataSet data_of(const std::vector<double>& values) { return DataSet(values, ImageShape{1, pixels}); }

// log N(x; centre, V diag(λ) Vᵀ), averaged over data
double mean_log_normal(const std::vector<double>& values, const std::vector<double>& centre,
                       const SymmetricEigen& covariance) {
  double sum = 0;
  const auto count = values.size() / pixels;
  for (std::size_t n = 0; n < count; ++n)
    for (int k = 0; k < pixels; ++k) {
      double projected = 0;
      for (int p = 0; p < pixels; ++p) projected += covariance.vector(p, k) * (values[n * pixels + p] - centre[p]);
      sum -= 0.5 * (log_two_pi + std::log(covariance.value[k]) + square(projected) / covariance.value[k]);
    }
  return sum / static_cast<double>(count);
}

struct MaximumLikelihood {
  explicit MaximumLikelihood(const std::vector<double>& values) : centre(pixels) {
    const auto count = static_cast<double>(values.size() / pixels);
    for (std::size_t i = 0; i < values.size(); ++i) centre[i % pixels] += values[i] / count;
    Matrix<double> s(pixels, pixels);
    for (std::size_t n = 0; n < values.size(); n += pixels)
      for (int i = 0; i < pixels; ++i)
        for (int j = 0; j < pixels; ++j) s(i, j) += (values[n + i] - centre[i]) * (values[n + j] - centre[j]) / count;
    covariance = symmetric_eigen(s);
    for (int k = 0; k < latent; ++k)
      for (int p = 0; p < pixels; ++p)
        weights.push_back(covariance.vector(p, k) * std::sqrt(covariance.value[k] - square(noise)));
    for (int k = latent; k < pixels; ++k) covariance.value[k] = square(noise);
  }

  std::vector<double> centre;
  SymmetricEigen covariance;    // of x under the fitted model
  std::vector<double> weights;  // (D, P), one row per latent dimension
};

TrainConfig config_of(const std::string& objective) {
  TrainConfig config = TrainConfig::paper();
  config.model = {ModelKind::gaussian_mf, latent, {}, {}, Activation::relu};
  config.model.initial = InitialWeights::paper;
  config.objective = objective_named(objective);
  config.shared_until = 100;
  config.refine = {.steps = 5, .adapt = Adapt::inside, .step_size = 0.2, .acceptance = 0.9};
  config.precision = Precision::float64;
  return config;
}

std::vector<double> exact_values(Engine& engine, const DataSet& data) {
  EvaluationConfig config;
  config.samples = 20;
  config.proposals = {true, false, false};
  std::vector<double> values;
  for (const PointEvaluation& point : engine.evaluate(data, config, {})) values.push_back(point.exact.value());
  return values;
}

double mean(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

TEST(GaussianMf, ExactEvidenceIsTheNormalDensity) {
  const std::vector<double> train = synthetic(500, 1), test = synthetic(100, 2);
  const MaximumLikelihood fitted(train);
  const DataSet train_data = data_of(train), test_data = data_of(test);
  const auto engine = make_cpu_engine(config_of("kl"), train_data, {});
  TrainState state = engine->save();
  array_of<double>(state, "decoder.weight[0]") = fitted.weights;
  engine->restore(state);
  EXPECT_NEAR(mean(exact_values(*engine, test_data)), mean_log_normal(test, fitted.centre, fitted.covariance), 1e-9);
}

// p(x, z) / p(z | x) is p(x), whatever z.
TEST(GaussianMf, JointIsPosteriorTimesEvidence) {
  const std::vector<double> train = synthetic(50, 1);
  const DataSet data = data_of(train);
  Model<double> model(config_of("kl").model, data);
  std::vector<double> w(latent * pixels);
  PhiloxSource(3).normals({Purpose::start}, w);
  std::ranges::copy(w, model.parameters().values().begin());
  model.pack(0, 1);
  Minibatch<double> minibatch = model.minibatch(3);
  const std::vector<int> indices = {4, 7, 30};
  model.expand(data, indices, 0, 3, minibatch);
  // precision M = I + W Wᵀ / s², mean M⁻¹ W x / s², by hand for D = 2
  double m[2][2] = {{1, 0}, {0, 1}};
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int p = 0; p < pixels; ++p) m[i][j] += w[i * pixels + p] * w[j * pixels + p] / square(noise);
  const double determinant = m[0][0] * m[1][1] - m[0][1] * m[1][0];
  Matrix<double> z(latent, 3), gradient(latent, 3);
  PhiloxSource(4).normals({Purpose::draw}, z.view().flat());
  std::vector<double> value(3);
  const std::vector<std::uint32_t> columns = {0, 1, 2};
  model.decoder().log_joint({z, minibatch, columns}, Want::both, value, gradient);
  for (int n = 0; n < 3; ++n) {
    double b[2] = {};
    for (int i = 0; i < 2; ++i)
      for (int p = 0; p < pixels; ++p) b[i] += w[i * pixels + p] * minibatch.view()(p, n) / square(noise);
    const double mu[2] = {(m[1][1] * b[0] - m[0][1] * b[1]) / determinant,
                          (m[0][0] * b[1] - m[1][0] * b[0]) / determinant};
    const double d[2] = {z(0, n) - mu[0], z(1, n) - mu[1]};
    const double quadratic = d[0] * (m[0][0] * d[0] + m[0][1] * d[1]) + d[1] * (m[1][0] * d[0] + m[1][1] * d[1]);
    const double posterior = -log_two_pi + 0.5 * std::log(determinant) - 0.5 * quadratic;
    const double evidence = model.exact_log_likelihood(minibatch, n);
    EXPECT_NEAR(value[n] - posterior, evidence, 1e-10 * (1 + std::abs(value[n])));
    for (int i = 0; i < 2; ++i)
      EXPECT_NEAR(gradient(i, n), -(m[i][0] * d[0] + m[i][1] * d[1]), 1e-9 * (1 + std::abs(gradient(i, n))));
  }
}

class GaussianMfTraining : public testing::TestWithParam<const char*> {};

TEST_P(GaussianMfTraining, ComesCloseToMaximumLikelihood) {
  const std::vector<double> train = synthetic(3000, 1), test = synthetic(1000, 2);
  const MaximumLikelihood fitted(train);
  const DataSet train_data = data_of(train), test_data = data_of(test);
  TrainConfig config = config_of(GetParam());
  config.rate_mean = config.rate_scale = config.rate_model = 0.01;
  config.decay_every = 200;
  const auto engine = make_cpu_engine(config, train_data, {});
  TrainMetrics metrics;
  engine->train(6000, metrics);
  const double reached = mean(exact_values(*engine, test_data));
  const double best = mean_log_normal(test, fitted.centre, fitted.covariance);
  EXPECT_NEAR(reached, best, 0.05);
  RecordProperty("short_of_maximum_likelihood", std::to_string(best - reached));

  // importance sampling agrees with the exact evidence, with every proposal
  EvaluationConfig evaluation;
  evaluation.samples = 2000;
  evaluation.burn_in = evaluation.kept = 100;
  const auto points = engine->evaluate(test_data.slice(0, 40), evaluation, {});
  double mixture = 0;
  for (const PointEvaluation& point : points) {
    const auto error = [&](const ImportanceEstimate& estimate) {  // in standard errors by the delta method
      return (estimate.log_likelihood - *point.exact) * std::sqrt(estimate.effective_samples);
    };
    for (const ImportanceEstimate& estimate : point.proposal) {
      EXPECT_LT(std::abs(error(estimate)), 5);
      EXPECT_GT(estimate.effective_samples, 100);
    }
    mixture += error(point.mixture);
  }
  EXPECT_LT(std::abs(mixture), 4 * std::sqrt(static_cast<double>(points.size())));
}

INSTANTIATE_TEST_SUITE_P(Objectives, GaussianMfTraining, testing::Values("kl", "hoffman", "vcd"),
                         [](const auto& objective) { return std::string(objective.param); });

}  // namespace
}  // namespace hone::test
