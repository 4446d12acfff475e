// The cuda engine as a whole: the same bits again, checkpoints for either engine, evaluation, many iterations.

#include <algorithm>
#include <mutex>
#include <numeric>

#include "hone/engine/engine_internals.hpp"
#include "tests/cuda/support.cuh"
#include "tests/engine/support.hpp"
#include "tests/support/thread_ranks.hpp"

namespace hone::test {
namespace {

using cuda::PathKind, cuda::PathOptions, cuda::Runs;

class CudaEngineTest : public CudaTest {
 protected:
  const DataSet data_ = made_up_data(ModelKind::vae, 150, 101);
  static TrainConfig config(const SomeObjective& objective = by_vcd()) {
    TrainConfig c = config_of(ModelKind::vae, objective);
    c.precision = Precision::automatic;
    return c;
  }
  static TrainState trained(Runs& runs, std::uint32_t iterations) {
    TrainMetrics metrics;
    runs.train(iterations, {&metrics, 1});
    return runs.save(0);
  }
};

TEST_F(CudaEngineTest, TwoRunsGiveTheSameBits) {
  for (const PathKind path : {PathKind::registers, PathKind::streamed, PathKind::products})
    for (const SomeObjective& objective : {by_kl(), by_vcd()}) {
      Runs a(config(objective), data_, {1}, {path}), b(config(objective), data_, {1}, {path});
      expect_same(trained(a, 40), trained(b, 40));
    }
}

// All ranks train the same run, and share the data of evaluations. Here they are threads that take turns where a
// refinement in one kernel may need the whole device; where it goes by products, they share it (share_test.cu).
TEST_F(CudaEngineTest, RanksHaveTheBitsOfOne) {
  struct Found {
    TrainState state;
    std::vector<double> evaluated, annealed;
  };
  std::mutex device;
  const auto turn_at = [&] {
    return has_clusters() ? std::unique_lock<std::mutex>(device) : std::unique_lock<std::mutex>();
  };
  const auto found_by = [&](Engine& engine) {
    Found found;
    {
      const auto turn = turn_at();
      TrainMetrics metrics;
      engine.train(40, metrics);
      found.state = engine.save();
    }
    for (const PointEvaluation& point :
         engine.evaluate(data_, {.samples = 600, .burn_in = 4, .kept = 4, .points = 130}, {}, 0)) {
      found.evaluated.push_back(point.best);
      found.evaluated.push_back(point.pilot);
      found.evaluated.push_back(point.mixture.log_likelihood);
    }
    for (const AnnealedPoint& point : engine.anneal(data_, {.config = {.steps = 6, .chains = 2}}, {}, 0))
      found.annealed.push_back(point.estimate.log_likelihood);
    return found;
  };
  const Found alone = found_by(*make_engine(EngineKind::cuda, config(), data_));
  EXPECT_EQ(alone.evaluated.size(), 3u * 130);
  for (const int size : {2, 3, 5})  // of five ranks some have no group
    ThreadRanks::run(size, [&](Ranks& ranks) {
      std::unique_ptr<Engine> engine;
      {
        const auto turn = turn_at();
        engine = make_engine(EngineKind::cuda, config(), data_, {}, {.ranks = &ranks});
      }
      const Found found = found_by(*engine);
      expect_same(alone.state, found.state);
      EXPECT_EQ(alone.evaluated, found.evaluated);
      EXPECT_EQ(alone.annealed, found.annealed);
    });
}

// Within a graph of many iterations each prepares the next; alone, every one is prepared for itself: the same bits.
TEST_F(CudaEngineTest, ManyAtOnceAreThoseOneByOne) {
  struct Shape {
    ModelKind model;
    int latent;
    std::vector<int> hidden, encoder_hidden;
    int pixels, batch;
    Precision precision = Precision::automatic;
    OptimizerKind optimizer = OptimizerKind::rmsprop;
    PathOptions path = {};
  };
  using enum ModelKind;
  const Shape shapes[] = {
      {vae, 10, {200, 200}, {200, 200}, 784, 100},
      {logistic_mf, 50, {}, {200, 200}, 784, 100},
      {vae, 3, {64, 13}, {64, 13}, 101, 37, Precision::automatic, OptimizerKind::adam},
      {vae, 16, {208, 208}, {301, 40}, 896, 37},
      {vae,
       10,
       {200, 200},
       {200, 200},
       784,
       100,
       Precision::automatic,
       OptimizerKind::rmsprop,
       {PathKind::registers, 16}},
      {vae, 3, {64, 13}, {70}, 101, 250, Precision::automatic, OptimizerKind::rmsprop, {PathKind::streamed}},
      {logistic_mf, 7, {}, {37, 53}, 1100, 250, Precision::float32},
      {vae, 3, {64, 13}, {33, 70, 19}, 101, 1, Precision::float32},
      {vae, 3, {64, 13}, {64, 13}, 101, 37, Precision::automatic, OptimizerKind::rmsprop, {PathKind::products}},
      {gaussian_mf, 7, {}, {64, 13}, 101, 37}};
  for (const Shape& shape : shapes)
    for (const SomeObjective& objective : {by_kl(), by_vcd()}) {
      TrainConfig c = config_of(shape.model, objective);
      c.model.latent = shape.latent;
      c.model.hidden = shape.hidden;
      c.model.encoder_hidden = shape.encoder_hidden;
      c.batch = shape.batch;
      c.precision = shape.precision;
      c.optimizer = shape.optimizer;
      c.refine.step_size = 0.01;
      const DataSet data = made_up_data(shape.model, 300, shape.pixels);
      Runs at_once(c, data, {1}, shape.path), one_by_one(c, data, {1}, shape.path);
      SCOPED_TRACE(at_once.path() + ", " + std::to_string(shape.pixels) + " pixels");
      const TrainState expected = trained(at_once, 70);
      for (int i = 0; i < 69; ++i) trained(one_by_one, 1);
      expect_same(expected, trained(one_by_one, 1));
    }
}

// More iterations than lie on the device at a time, cut otherwise.
TEST_F(CudaEngineTest, ThousandsAtOnceAreThoseInTwoParts) {
  Runs whole(config(), data_, {1}), parts(config(), data_, {1});
  const TrainState expected = trained(whole, 2100);
  trained(parts, 700);
  expect_same(expected, trained(parts, 1400));
}

TEST_F(CudaEngineTest, GoesOnAsIfItHadNeverStopped) {
  for (const OptimizerKind optimizer : {OptimizerKind::rmsprop, OptimizerKind::adam}) {
    TrainConfig c = config();
    c.optimizer = optimizer;
    Runs whole(c, data_, {1});
    const TrainState expected = trained(whole, 50);
    for (const std::uint32_t stop : {8u, 10u, 37u}) {
      Runs first(c, data_, {1}), second(c, data_, {1});
      second.restore(trained(first, stop), 0);
      expect_same(expected, trained(second, 50 - stop));
    }
  }
}

// Runs side by side are the runs that they would be alone, whatever the number of chains of a cluster … but for the
// order of sums, which that number changes.
TEST_F(CudaEngineTest, RunsSideBySideAreThoseAlone) {
  const std::vector<std::uint64_t> seeds = {1, 2, 3};
  const auto compare = [&](TrainConfig c, const DataSet& data, const PathOptions& path) {
    Runs together(c, data, seeds, path);
    if (path.kind == PathKind::streamed && has_clusters())
      EXPECT_NE(together.path().find("blocks alone"), std::string::npos);
    std::vector<TrainMetrics> metrics(3);
    together.train(40, metrics);
    for (int run = 0; run < 3; ++run) {
      c.seed = seeds[run];
      Runs alone(c, data, {seeds[run]}, path);
      expect_same(trained(alone, 40), together.save(run));
    }
  };
  const PathOptions paths[] = {
      {PathKind::products}, {PathKind::registers, 8}, {PathKind::registers, 16}, {PathKind::streamed}};
  for (const PathOptions& path : paths) compare(config(), data_, path);
  TrainConfig c = config_of(ModelKind::gaussian_mf, by_vcd());
  c.precision = Precision::automatic;
  compare(c, made_up_data(ModelKind::gaussian_mf, 150, 101), {});
}

// Ten iterations in float32, each from the cpu engine's state: what it learns within 2 · 10⁻³ of a tensor's largest
// step, but where a Metropolis decision within rounding of its threshold fell to the other side; those are counted.
TEST_F(CudaEngineTest, TenIterationsFromTheCpuEnginesStates) {
  for (const FirstTerm first : {FirstTerm::reparameterized, FirstTerm::score}) {
    TrainConfig c = config();
    c.precision = Precision::float32;
    c.objective = by_vcd({.first_term = first});
    c.shared_until = 2;  // then every datum has its own control variates; minibatches 5 and 9 may have one twice
    const auto cpu = make_cpu_engine(c, data_, {});
    Runs runs(c, data_, {1});
    int flips = 0;
    for (int i = 0; i < 10; ++i) {
      const TrainState before = cpu->save();
      runs.restore(before, 0);
      TrainMetrics cpu_metrics, metrics;
      cpu->train(1, cpu_metrics);
      runs.train(1, {&metrics, 1});
      const TrainState expected = cpu->save(), found = runs.save(0);
      if (std::abs(expected.step_size / found.step_size - 1) > 1e-9) {
        ++flips;
        continue;
      }
      for (std::size_t a = 0; a < expected.arrays.size(); ++a) {
        if (expected.arrays[a].name.starts_with("optimizer")) continue;
        std::vector<double> from = values_of(before.arrays[a]), to = values_of(expected.arrays[a]),
                            got = values_of(found.arrays[a]);
        for (std::size_t k = 0; k < from.size(); ++k) to[k] -= from[k], got[k] -= from[k];
        EXPECT_LT(relative_error(to, got), 2e-3) << expected.arrays[a].name << " in iteration " << i + 1;
      }
    }
    EXPECT_LE(flips, 1);
  }
}

// Written by one engine, read by the other, and back.
TEST_F(CudaEngineTest, CheckpointsGoFromEngineToEngine) {
  TrainConfig c = config();
  const auto cpu = make_cpu_engine(c, data_, {});
  const auto cuda = make_cuda_engine(c, data_);
  TrainMetrics metrics;
  cuda->train(12, metrics);
  cpu->restore(cuda->save());
  expect_same(cuda->save(), cpu->save());
  cpu->train(5, metrics);
  cuda->restore(cpu->save());
  expect_same(cuda->save(), cpu->save());
  cuda->train(5, metrics);
  EXPECT_EQ(cuda->iteration(), 22u);
}

TEST_F(CudaEngineTest, LearnsAsTheCpuEngineDoes) {
  for (const SomeObjective& objective : {by_kl(), by_vcd()}) {
    const auto cpu = make_cpu_engine(config(objective), data_, {});
    const auto cuda = make_cuda_engine(config(objective), data_);
    TrainMetrics ignored, cpu_metrics, metrics;
    cpu->train(300, ignored);
    cuda->train(300, ignored);
    cpu->train(200, cpu_metrics);
    cuda->train(200, metrics);
    const Estimate a = cpu_metrics.elbo.estimate(), b = metrics.elbo.estimate();
    EXPECT_NEAR(a.mean, b.mean, 5 * std::hypot(a.se, b.se));
  }
}

TEST_F(CudaEngineTest, ParametersThatAreNotFiniteEndTheRun) {
  TrainConfig c = config();
  c.rate_model = 1e38;
  const auto cuda = make_cuda_engine(c, data_);
  TrainMetrics metrics;
  EXPECT_THROW(cuda->train(50, metrics), Error);
}

// One run of a group is given weights that are not finite; the other is as it would be alone.
TEST_F(CudaEngineTest, OneRunThatFailsLeavesTheOthersAlone) {
  const std::vector<std::uint64_t> seeds = {1, 2};
  const auto group = make_cuda_engine(config(), data_, seeds);
  TrainState broken = group->save(0);
  for (NamedArray& array : broken.arrays)
    if (array.name == "decoder.weight[0]")
      for (float& value : std::get<std::vector<float>>(array.values)) value = std::nanf("");
  group->restore(broken, 0);
  std::vector<TrainMetrics> metrics(2);
  group->train(20, metrics);
  EXPECT_NE(group->failure(0).find("no longer finite"), std::string::npos);
  EXPECT_EQ(group->failure(1), "");
  Runs together(config(), data_, {3, 2});
  together.train(20, metrics);
  expect_same(together.save(1), group->save(1));
}

// Some of the data by the cpu engine in float32 and by the device, which has trained the model a little.
struct Evaluated {
  std::vector<PointEvaluation> expected, found;
};
Evaluated evaluated(TrainConfig config, Precision precision, std::uint32_t iterations, int data_size,
                    const EvaluationConfig& evaluation) {
  const DataSet data = made_up_data(config.model.kind, data_size, 101);
  const auto cpu = make_cpu_engine(config, data, {.threads = 2});
  config.precision = precision;
  const auto cuda = make_cuda_engine(config, data);
  TrainMetrics metrics;
  cuda->train(iterations, metrics);
  cpu->restore(cuda->save());
  return {cpu->evaluate(data, evaluation, {}), cuda->evaluate(data, evaluation, {})};
}

TEST_F(CudaEngineTest, EvaluatesAsTheCpuEngineDoes) {
  EvaluationConfig evaluation;
  evaluation.samples = 1100;
  evaluation.burn_in = evaluation.kept = 20;
  evaluation.points = 60;
  for (const ModelKind model : {ModelKind::vae, ModelKind::gaussian_mf, ModelKind::poisson_mf}) {
    const auto [expected, found] = evaluated(config_of(model, by_vcd()), Precision::float32, 30, 130, evaluation);
    ASSERT_EQ(found.size(), 60u);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double size = std::abs(expected[i].mixture.log_likelihood);
      EXPECT_NEAR(expected[i].proposal[0].log_likelihood, found[i].proposal[0].log_likelihood, 1e-4 * size);
      EXPECT_NEAR(expected[i].proposal[0].effective_samples, found[i].proposal[0].effective_samples, 1e-2 * 1100);
      // chains whose decisions fell otherwise have other moments
      EXPECT_NEAR(expected[i].mixture.log_likelihood, found[i].mixture.log_likelihood, 0.02 * size);
      EXPECT_EQ(expected[i].exact.has_value(), found[i].exact.has_value());
      if (found[i].exact) EXPECT_NEAR(*expected[i].exact, *found[i].exact, 1e-6 * size);
    }
  }
}

// In tf32: few dimensions and many; more points than are drawn for at once.
TEST_F(CudaEngineTest, EvaluatesInTf32AsTheCpuEngineDoes) {
  EvaluationConfig evaluation;
  evaluation.samples = 50;
  evaluation.burn_in = evaluation.kept = 2;
  evaluation.points = 300;
  for (const int latent : {1, 4, 70})
    for (const ModelKind model : {ModelKind::vae, ModelKind::logistic_mf}) {
      SCOPED_TRACE(std::to_string(latent) + " dimensions, model " + std::to_string(static_cast<int>(model)));
      TrainConfig c = config_of(model, by_vcd());
      c.model.latent = latent;
      const auto [expected, found] = evaluated(c, Precision::tf32, 10, 330, evaluation);
      ASSERT_EQ(found.size(), 300u);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(expected[i].proposal[0].log_likelihood, found[i].proposal[0].log_likelihood,
                    2e-3 * std::abs(expected[i].proposal[0].log_likelihood));
    }
}

// Which refinement is chosen: registers for one run, a block alone for many, where products may be in halves.
TEST_F(CudaEngineTest, ManyRunsHaveBlocksAlone) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  TrainConfig c = config_of(ModelKind::vae, by_vcd());
  c.precision = Precision::tf32;
  std::vector<std::uint64_t> seeds(32);
  std::iota(seeds.begin(), seeds.end(), 1);
  const auto says = [](const Runs& runs, const char* text) { return runs.path().find(text) != std::string::npos; };
  EXPECT_TRUE(says(Runs(c, data_, {1}), "weights in registers"));
  EXPECT_TRUE(says(Runs(c, data_, seeds), "blocks alone, 16 chains each, weights streaming by"));
  c.precision = Precision::float32;
  EXPECT_FALSE(says(Runs(c, data_, seeds), "blocks alone"));
}

// The device in float32 and tf32 against the cpu engine in double, with the same random numbers.
struct Annealed {
  std::vector<AnnealedPoint> expected, found;
  double size() const { return std::abs(expected.front().estimate.log_likelihood); }
  // Points whose figures differ by more than rounding: a Metropolis decision fell to the other side, of a chain of the
  // point or of one that tunes its group's step sizes.
  int apart(double tolerance) const {
    int count = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      count += std::abs(expected[i].estimate.log_likelihood - found[i].estimate.log_likelihood) > tolerance * size();
    return count;
  }
  double shift() const {
    double sum = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      sum += found[i].estimate.log_likelihood - expected[i].estimate.log_likelihood;
    return sum / static_cast<double>(found.size());
  }
};

class CudaAnnealingTest : public CudaEngineTest {
 protected:
  struct Engines {
    std::unique_ptr<Engine> cpu, cuda;
  };
  static Engines engines(ModelKind model, Precision precision, const DataSet& data) {
    TrainConfig c = config_of(model, by_vcd()), exact = c;
    c.precision = precision;
    exact.precision = Precision::float64;
    Engines e{make_cpu_engine(exact, data, {.threads = 2}), make_cuda_engine(c, data)};
    TrainMetrics metrics;
    e.cuda->train(30, metrics);
    e.cpu->restore(converted<double>(e.cuda->save()));
    return e;
  }
  static Annealed annealed(const Engines& e, const DataSet& data, const AnnealingTask& task) {
    return {e.cpu->anneal(data, task, {}), e.cuda->anneal(data, task, {})};
  }
  static void expect_close(const Annealed& a, double tolerance, std::size_t points) {
    ASSERT_EQ(a.found.size(), points);
    ASSERT_EQ(a.expected.size(), points);
    EXPECT_LE(a.apart(tolerance), static_cast<int>(points) / 2);
    EXPECT_EQ(a.apart(0.05), 0);
    EXPECT_LT(std::abs(a.shift()), 10 * tolerance * a.size());
    const AnnealingConfig any;
    EXPECT_NEAR(summarize(a.expected, any).acceptance, summarize(a.found, any).acceptance, 0.02);
    EXPECT_EQ(summarize(a.found, any).rejected_nonfinite, 0);
  }
};

// Relative to log p(x), for points whose decisions are the same.
constexpr std::pair<Precision, double> annealing_tolerances[] = {{Precision::float32, 1e-4}, {Precision::tf32, 3e-3}};

TEST_F(CudaAnnealingTest, AnnealsAsTheCpuEngineDoes) {
  for (const ModelKind model : {ModelKind::vae, ModelKind::logistic_mf, ModelKind::gaussian_mf, ModelKind::poisson_mf})
    for (const auto& [precision, tolerance] : annealing_tolerances) {
      SCOPED_TRACE(static_cast<int>(model));
      const DataSet data = made_up_data(model, 130, 101);
      const Engines e = engines(model, precision, data);
      AnnealingTask task;
      task.config = {15, 3, 2};
      task.points = 60;
      expect_close(annealed(e, data, task), tolerance, 60);
    }
}

TEST_F(CudaAnnealingTest, AnnealsBackwardAsTheCpuEngineDoes) {
  const Engines e = engines(ModelKind::vae, Precision::float32, data_);
  const SimulatedData made = e.cpu->simulate(70), same = e.cuda->simulate(70);
  EXPECT_TRUE(std::ranges::equal(made.z.view().flat(), same.z.view().flat()));
  AnnealingTask task;
  task.config = {15, 3, 2};
  task.posterior_draws = made.z;
  expect_close(annealed(e, made.data, task), 1e-4, 70);
}

TEST_F(CudaAnnealingTest, TheSameBitsAgainAndHoweverManyPoints) {
  const Engines e = engines(ModelKind::vae, Precision::tf32, data_);
  AnnealingTask task;
  task.config = {12, 2, 3};
  const auto all = e.cuda->anneal(data_, task, {}), again = e.cuda->anneal(data_, task, {});
  task.points = 73;
  const auto fewer = e.cuda->anneal(data_, task, {});
  ASSERT_EQ(all.size(), 150u);
  ASSERT_EQ(fewer.size(), 73u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].estimate.log_likelihood, again[i].estimate.log_likelihood);
    if (i < fewer.size()) EXPECT_EQ(all[i].estimate.log_likelihood, fewer[i].estimate.log_likelihood);
  }
}

TEST_F(CudaAnnealingTest, APartOfTheDataHasTheBitsOfTheWhole) {
  const Engines e = engines(ModelKind::vae, Precision::tf32, data_);
  AnnealingTask task;
  task.config = {12, 2, 3};
  EvaluationConfig config;
  config.samples = 600;
  const auto annealed = e.cuda->anneal(data_, task, {});
  const auto evaluated = e.cuda->evaluate(data_, config, {});
  task.first = config.first = 50;
  int told = 0;
  const DataSet part = data_.slice(50, 150);
  const auto some = e.cuda->anneal(part, task, {});
  const auto others = e.cuda->evaluate(part, config, [&](int done) { told = done; });
  EXPECT_EQ(told, 100);
  ASSERT_EQ(some.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(some[i].estimate.log_likelihood, annealed[50 + i].estimate.log_likelihood);
    EXPECT_EQ(others[i].mixture.log_likelihood, evaluated[50 + i].mixture.log_likelihood);
  }
}

// Against the exact evidence, by the default schedule.
TEST_F(CudaAnnealingTest, ComesCloseToTheExactEvidence) {
  const DataSet data = made_up_data(ModelKind::gaussian_mf, 100, 101);
  const Engines e = engines(ModelKind::gaussian_mf, Precision::float32, data);
  EvaluationConfig cheap;
  cheap.samples = 10;
  cheap.proposals = {true, false, false};
  const auto exact = e.cuda->evaluate(data, cheap, {});
  const auto found = e.cuda->anneal(data, {}, {});
  Moments error;
  for (std::size_t i = 0; i < found.size(); ++i) error.add(found[i].estimate.log_likelihood - exact[i].exact.value());
  EXPECT_NEAR(error.mean(), 0, 0.1 + 4 * error.estimate().se);
}

}  // namespace
}  // namespace hone::test
