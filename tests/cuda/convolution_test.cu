// Convolutions on the device against the cpu engine: one iteration, several, evidence, runs together, stops.

#include "hone/latent/likelihoods.hpp"
#include "tests/cuda/iteration_support.cuh"
#include "tests/engine/support.hpp"

namespace hone::test {
namespace {

struct ImageCase {
  std::string name;
  ImageShape shape;
  std::vector<int> channels;
  int batch = 37;
  Density likelihood = Density::bernoulli;
  SomeObjective objective = by_vcd();
  Precision precision = Precision::float32;
  Activation activation = Activation::tanh;
  int categories = 0;
};

DataSet images_of(const ImageCase& c, int count) {
  const LikelihoodFacts facts = facts_of(c.likelihood);
  std::vector<double> values(static_cast<std::size_t>(count) * c.shape.pixels());
  PhiloxSource(2).uniforms({Purpose::synthesize}, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    double& x = values[i];
    if (facts.grouped)  // a group begins with the number that chooses
      x = static_cast<int>(c.categories * std::abs(values[i - i % c.categories])) == static_cast<int>(i % c.categories)
              ? x
              : -x;
    else if (facts.bits)
      x = x < 0.4;
    else
      x = facts.counts ? std::floor(5 * x * x) : x - 0.5;
  }
  if (facts.grouped)
    for (double& x : values) x = x > 0;
  return packed_if_binary(DataSet(std::move(values), c.shape));
}

TrainConfig training_of(const ImageCase& c) {
  TrainConfig config;  // Adam, which keeps the gradient itself
  config.model = {.latent = 3,
                  .hidden = {13},
                  .encoder_hidden = {11},
                  .activation = c.activation,
                  .likelihood = c.likelihood,
                  .categories = c.categories,
                  .channels = c.channels};
  config.objective = c.objective;
  config.shared_until = 3;
  // in tf32 so short that a decision that falls to the other side moves nothing
  config.refine = {2, Adapt::off, c.precision == Precision::tf32 ? 2e-5 : 0.002, 0.9, -1};
  config.batch = c.batch;
  config.precision = c.precision;
  config.seed = 4;
  return config;
}

// Odd images, and those whose pixels lie as products take them; one window, one channel, one image; more images than
// are worked on at a time.
std::vector<ImageCase> shapes() {
  using enum Density;
  return {{"5 and 16 channels", {8, 8, 3}, {5, 16}, 37, gaussian},
          {"one channel", {8, 8, 1}, {4}, 1},
          {"odd channels", {12, 20, 3}, {3, 7}, 29, gaussian},
          {"one window", {2, 2, 1}, {1}, 7},
          {"four channels of data", {4, 12, 4}, {8, 12}, 13},
          {"many channels", {4, 4, 1}, {20, 36}, 50},
          {"three convolutions", {8, 16, 2}, {6, 32, 9}, 20},
          {"small images", {2, 4, 2}, {2}, 1000},
          {"the usual shape", {32, 32, 3}, {32, 64}, 100, gaussian},
          {"many images", {32, 32, 3}, {32, 64}, 530, bernoulli, by_kl()}};
}

class CudaConvolution : public CudaIteration {
 protected:
  static void compare_one(const ImageCase& c, const Tolerances& tolerance) {
    SCOPED_TRACE(c.name + ", " + c.objective->name());
    const TrainConfig config = training_of(c);
    const DataSet data = images_of(c, std::max(c.batch, 60) + 20);
    Runs runs(config, data, {config.seed});
    EXPECT_NE(runs.path().find("convolutions: products of gathered windows"), std::string::npos) << runs.path();
    const TrainState start = runs.save(0);
    compare(config, runs, start, by_cpu<double>(config, data, start), tolerance);
  }
};

// The VCD is a small difference of large numbers here; in tf32 it is not compared.
TEST_F(CudaConvolution, OneIterationAgainstDouble) {
  Tolerances tolerance = near_fp32;
  tolerance.vcd = fp32.vcd;
  for (ImageCase c : shapes()) {
    compare_one(c, tolerance);
    if (c.batch < 100)
      for (const SomeObjective& objective : {by_kl(), by_hoffman(), by_li2017()}) {
        c.objective = objective;
        compare_one(c, tolerance);
      }
  }
}

TEST_F(CudaConvolution, OneIterationInTf32AgainstDouble) {
  Tolerances tolerance = tf32;
  tolerance.vcd = INFINITY;
  for (ImageCase c : shapes()) {
    c.precision = Precision::tf32;
    compare_one(c, tolerance);
  }
}

// Each iteration from the device's state, with ReLUs: but for units at their kink.
TEST_F(CudaConvolution, LearnsAsTheCpuEngineDoes) {
  for (const Density likelihood : {Density::bernoulli, Density::gaussian, Density::poisson, Density::categorical}) {
    SCOPED_TRACE(std::string(facts_of(likelihood).name));
    ImageCase c{"", {8, 12, 3}, {5, 8}, 37, likelihood};
    c.activation = Activation::relu;
    c.categories = likelihood == Density::categorical ? 3 : 0;
    const DataSet data = images_of(c, 150);
    TrainConfig config = training_of(c), in_double = config;
    in_double.precision = Precision::float64;
    const auto exact = make_cpu_engine(in_double, data, {.threads = 2});
    const auto cuda = make_cuda_engine(config, data);
    TrainMetrics expected, found;
    for (int i = 0; i < 5; ++i) {
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

TEST_F(CudaConvolution, EvaluatesAndAnnealsAsTheCpuEngineDoes) {
  EvaluationConfig evaluation;
  evaluation.samples = 600;
  evaluation.burn_in = evaluation.kept = 10;
  evaluation.points = 50;
  AnnealingTask task;
  task.config = {15, 3, 2};
  task.points = 50;
  for (const Density likelihood : {Density::bernoulli, Density::gaussian})
    for (const auto& [precision, tolerance] : {std::pair{Precision::float32, 1e-4}, {Precision::tf32, 3e-3}}) {
      SCOPED_TRACE(facts_of(likelihood).name);
      ImageCase c{"", {8, 8, 3}, {5, 16}, 37, likelihood};
      c.precision = precision;
      const DataSet data = images_of(c, 130);
      TrainConfig in_double = training_of(c);
      in_double.precision = Precision::float64;
      const auto exact = make_cpu_engine(in_double, data, {.threads = 2});
      const auto cuda = make_cuda_engine(training_of(c), data);
      TrainMetrics metrics;
      cuda->train(30, metrics);
      exact->restore(converted<double>(cuda->save()));
      const auto expected = exact->evaluate(data, evaluation, {}), found = cuda->evaluate(data, evaluation, {});
      const auto annealed = exact->anneal(data, task, {}), same = cuda->anneal(data, task, {});
      int apart = 0;
      for (int i = 0; i < 50; ++i) {
        const double size = 10 + std::abs(expected[i].proposal[0].log_likelihood);
        EXPECT_NEAR(expected[i].proposal[0].log_likelihood, found[i].proposal[0].log_likelihood, tolerance * size);
        apart += std::abs(annealed[i].estimate.log_likelihood - same[i].estimate.log_likelihood) > tolerance * size;
      }
      EXPECT_LE(apart, 25);  // a Metropolis decision fell to the other side
    }
}

TrainState trained(Runs& runs, std::uint32_t iterations) {
  TrainMetrics metrics;
  runs.train(iterations, {&metrics, 1});
  return runs.save(0);
}

TEST_F(CudaConvolution, GoesOnAsIfItHadNeverStopped) {
  for (const ImageCase& c : {shapes()[0], shapes()[2], shapes()[4]}) {
    SCOPED_TRACE(c.name);
    TrainConfig config = training_of(c);
    config.precision = Precision::automatic;
    config.refine.adapt = Adapt::inside;
    const DataSet data = images_of(c, 150);
    Runs whole(config, data, {1}), first(config, data, {1}), second(config, data, {1});
    const TrainState expected = trained(whole, 20);
    second.restore(trained(first, 7), 0);
    expect_same(expected, trained(second, 13));
  }
}

TEST_F(CudaConvolution, RunsSideBySideAreThoseAlone) {
  for (const ImageCase& c : {shapes()[0], shapes()[2], shapes()[8]}) {
    SCOPED_TRACE(c.name);
    TrainConfig config = training_of(c);
    config.precision = Precision::automatic;
    config.refine.adapt = Adapt::inside;
    const DataSet data = images_of(c, 150);
    const std::vector<std::uint64_t> seeds = {1, 2, 3};
    Runs together(config, data, seeds);
    std::vector<TrainMetrics> metrics(3);
    together.train(10, metrics);
    for (int run = 0; run < 3; ++run) {
      config.seed = seeds[run];
      Runs alone(config, data, {seeds[run]});
      expect_same(trained(alone, 10), together.save(run));
    }
  }
}

TEST_F(CudaConvolution, CheckpointsGoFromEngineToEngine) {
  const ImageCase c = shapes()[2];
  TrainConfig config = training_of(c);
  config.precision = Precision::automatic;
  const DataSet data = images_of(c, 150);
  const auto cpu = make_cpu_engine(config, data, {});
  const auto cuda = make_cuda_engine(config, data);
  TrainMetrics metrics;
  cuda->train(4, metrics);
  cpu->restore(cuda->save());
  expect_same(cuda->save(), cpu->save());
  cpu->train(3, metrics);
  cuda->restore(cpu->save());
  expect_same(cuda->save(), cpu->save());
  cuda->train(3, metrics);
  EXPECT_EQ(cuda->iteration(), 10u);
}

}  // namespace
}  // namespace hone::test
