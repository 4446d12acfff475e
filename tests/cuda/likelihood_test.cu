// Likelihoods that no product computes, on the device against the cpu engine: one iteration, evidence, runs together.

#include "hone/latent/likelihoods.hpp"
#include "tests/cuda/support.cuh"
#include "tests/engine/support.hpp"

namespace hone::test {
namespace {

using cuda::Runs;

constexpr int pixels = 99, categories = 3;

struct Case {
  ModelKind kind;
  Density likelihood;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ModelKind kind : {ModelKind::vae, ModelKind::mf})
    for (const Density likelihood : {Density::gaussian, Density::poisson, Density::gaussian_learned,
                                     Density::categorical, Density::negative_binomial})
      all.push_back({kind, likelihood});
  return all;
}

DataSet data_of(Density likelihood, int points) {
  const LikelihoodFacts facts = facts_of(likelihood);
  std::vector<double> values(static_cast<std::size_t>(points) * pixels);
  PhiloxSource(2).uniforms({Purpose::synthesize}, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    double& x = values[i];
    if (facts.grouped)  // a group begins with the number that chooses
      x = static_cast<int>(categories * std::abs(values[i - i % categories])) == static_cast<int>(i % categories) ? x
                                                                                                                  : -x;
    else
      x = facts.counts ? std::floor(5 * x * x) : x - 0.5;
  }
  if (facts.grouped)
    for (double& x : values) x = x > 0;
  return packed_if_binary(DataSet(std::move(values), {1, pixels}));
}

TrainConfig training_of(const Case& c, Precision precision) {
  TrainConfig config = config_of(c.kind, by_vcd());
  config.model.initial = InitialWeights::scaled;
  config.model.likelihood = c.likelihood;
  if (c.likelihood == Density::categorical) config.model.categories = categories;
  config.precision = precision;
  config.refine.step_size = 0.02;
  return config;
}

class CudaLikelihoodTest : public CudaTest {};

TEST_F(CudaLikelihoodTest, LearnsAsTheCpuEngineDoes) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(std::string(facts_of(c.likelihood).name) + (c.kind == ModelKind::vae ? " vae" : " mf"));
    const DataSet data = data_of(c.likelihood, 150);
    const auto exact = make_cpu_engine(training_of(c, Precision::float64), data, {.threads = 2});
    const auto cuda = make_cuda_engine(training_of(c, Precision::float32), data);
    TrainMetrics expected, found;
    for (int i = 0; i < 5; ++i) {  // each iteration from the device's state
      exact->restore(converted<double>(cuda->save()));
      exact->train(1, expected);
      cuda->train(1, found);
    }
    const TrainState expected_state = exact->save(), found_state = cuda->save();
    for (const NamedArray& array : expected_state.arrays)
      if (is_parameter(array))
        EXPECT_LT(share_beyond(values_of(array), values_of(array_of(found_state, array.name)), 2e-3), 0.02)
            << array.name;
    EXPECT_NEAR(expected.elbo.mean(), found.elbo.mean(), 1e-3 * std::abs(expected.elbo.mean()));
    EXPECT_NEAR(expected.acceptance.mean(), found.acceptance.mean(), 0.02);
  }
}

TEST_F(CudaLikelihoodTest, EvaluatesAndAnnealsAsTheCpuEngineDoes) {
  EvaluationConfig evaluation;
  evaluation.samples = 600;
  evaluation.burn_in = evaluation.kept = 10;
  evaluation.points = 50;
  AnnealingTask task;
  task.config = {15, 3, 2};
  task.points = 50;
  for (const Case& c : cases())
    for (const auto& [precision, tolerance] : {std::pair{Precision::float32, 1e-4}, {Precision::tf32, 3e-3}}) {
      SCOPED_TRACE(std::string(facts_of(c.likelihood).name) + (c.kind == ModelKind::vae ? " vae" : " mf"));
      const DataSet data = data_of(c.likelihood, 130);
      const auto exact = make_cpu_engine(training_of(c, Precision::float64), data, {.threads = 2});
      const auto cuda = make_cuda_engine(training_of(c, precision), data);
      TrainMetrics metrics;
      cuda->train(30, metrics);
      exact->restore(converted<double>(cuda->save()));
      const auto expected = exact->evaluate(data, evaluation, {}), found = cuda->evaluate(data, evaluation, {});
      const auto annealed = exact->anneal(data, task, {}), same = cuda->anneal(data, task, {});
      int apart = 0;
      for (int i = 0; i < 50; ++i) {
        const double size = 10 + std::abs(expected[i].proposal[0].log_likelihood);
        EXPECT_NEAR(expected[i].proposal[0].log_likelihood, found[i].proposal[0].log_likelihood, tolerance * size);
        EXPECT_EQ(expected[i].exact.has_value(), found[i].exact.has_value());
        apart += std::abs(annealed[i].estimate.log_likelihood - same[i].estimate.log_likelihood) > tolerance * size;
      }
      EXPECT_LE(apart, 25);  // a Metropolis decision fell to the other side
    }
}

TEST_F(CudaLikelihoodTest, RunsSideBySideAreThoseAlone) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(facts_of(c.likelihood).name);
    const DataSet data = data_of(c.likelihood, 150);
    TrainConfig config = training_of(c, Precision::automatic);
    Runs together(config, data, {1, 2});
    std::vector<TrainMetrics> metrics(2);
    together.train(20, metrics);
    for (int run = 0; run < 2; ++run) {
      config.seed = static_cast<std::uint64_t>(run + 1);
      Runs alone(config, data, {config.seed});
      TrainMetrics one;
      alone.train(20, {&one, 1});
      expect_same(alone.save(0), together.save(run));
    }
  }
}

// Numbers that happen to be bits lose their mean, as all numbers do.
TEST_F(CudaLikelihoodTest, CentresBits) {
  const DataSet data = made_up_data(ModelKind::vae, 150, pixels);
  const Case c = {ModelKind::vae, Density::gaussian};
  const auto exact = make_cpu_engine(training_of(c, Precision::float64), data, {});
  const auto cuda = make_cuda_engine(training_of(c, Precision::float32), data);
  TrainMetrics expected, found;
  exact->restore(converted<double>(cuda->save()));
  exact->train(1, expected);
  cuda->train(1, found);
  EXPECT_NEAR(expected.elbo.mean(), found.elbo.mean(), 1e-3 * std::abs(expected.elbo.mean()));
}

}  // namespace
}  // namespace hone::test
