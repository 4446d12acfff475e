// Ranks that share the minibatch of one run have the bits of one device. Here ranks are threads, all on device 0.

#include "tests/cuda/support.cuh"
#include "tests/engine/support.hpp"
#include "tests/support/thread_ranks.hpp"

namespace hone::test {
namespace {

using cuda::PathKind, cuda::PathOptions, cuda::Runs;

constexpr PathOptions by_products = {PathKind::products};

struct Learned {
  TrainState state;
  RawMoments elbo, vcd, acceptance;
  std::int64_t nonfinite, dropped;
  std::string failure;
};

Learned learned_by(Runs& runs, std::uint32_t iterations) {
  TrainMetrics metrics;
  runs.train(iterations, {&metrics, 1});
  return {runs.save(0),
          metrics.elbo.raw(),
          metrics.vcd.raw(),
          metrics.acceptance.raw(),
          metrics.rejected_nonfinite,
          metrics.dropped_draws,
          runs.failure(0)};
}

void expect_equal(const RawMoments& a, const RawMoments& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.squares, b.squares);
}

void expect_equal(const Learned& a, const Learned& b) {
  expect_same(a.state, b.state);
  expect_equal(a.elbo, b.elbo);
  expect_equal(a.vcd, b.vcd);
  expect_equal(a.acceptance, b.acceptance);
  EXPECT_EQ(a.nonfinite, b.nonfinite);
  EXPECT_EQ(a.dropped, b.dropped);
  EXPECT_EQ(a.failure, b.failure);
}

class CudaShareTest : public CudaTest {
 protected:
  static constexpr std::uint32_t iterations = 25;  // local control variates begin after 10

  static void expect_same_on_ranks(const TrainConfig& config, const DataSet& data,
                                   const std::vector<int>& sizes = {2, 3}) {
    Runs one(config, data, {config.seed}, by_products);
    const Learned expected = learned_by(one, iterations);
    for (const int size : sizes)
      ThreadRanks::run(size, [&](Ranks& ranks) {
        SCOPED_TRACE(std::to_string(size) + " ranks, rank " + std::to_string(ranks.rank()));
        Runs shared(config, data, {config.seed}, by_products, &ranks);
        EXPECT_TRUE(shared.ranks_share_iterations());
        expect_equal(expected, learned_by(shared, iterations));
      });
  }
  static TrainConfig config(ModelKind model = ModelKind::vae, const SomeObjective& objective = by_vcd()) {
    TrainConfig c = config_of(model, objective);
    c.precision = Precision::automatic;
    return c;
  }
  static DataSet data(ModelKind model = ModelKind::vae) { return made_up_data(model, 150, 101); }
};

// In halves, tf32 and float32; batches that are no multiple of a step, of one row, and smaller than a step per rank.
TEST_F(CudaShareTest, HasTheBitsOfOneDevice) {
  for (const Precision precision : {Precision::automatic, Precision::float32})
    for (const int batch : {37, 104, 150, 5, 1}) {
      SCOPED_TRACE("batch " + std::to_string(batch));
      TrainConfig c = config();
      c.precision = precision;
      c.batch = batch;
      expect_same_on_ranks(c, data(), {2, 3, 5});
    }
}

TEST_F(CudaShareTest, EveryObjective) {
  for (const SomeObjective& objective :
       {by_kl(), by_hoffman(), by_li2017(), by_vcd({.first_term = FirstTerm::score}),
        by_vcd({.entropy = Entropy::sampled}), by_vcd({.ramp = {.from = 2, .until = 9}, .score_bound = 3})}) {
    SCOPED_TRACE(objective->name());
    expect_same_on_ranks(config(ModelKind::vae, objective), data());
  }
}

TEST_F(CudaShareTest, EveryModelOfTheDevice) {
  for (const ModelKind model : {ModelKind::logistic_mf, ModelKind::gaussian_mf, ModelKind::poisson_mf}) {
    SCOPED_TRACE(static_cast<int>(model));
    expect_same_on_ranks(config(model), data(model));
  }
}

TEST_F(CudaShareTest, EveryWayOfMovingAndLearning) {
  const auto with = [](const char* what, auto change) {
    SCOPED_TRACE(what);
    TrainConfig c = config();
    change(c);
    expect_same_on_ranks(c, data());
  };
  with("between", [](TrainConfig& c) { c.refine.adapt = Adapt::between; });
  with("off", [](TrainConfig& c) { c.refine.adapt = Adapt::off; });
  with("jitter", [](TrainConfig& c) { c.kernel = hmc({5, 3}); });
  with("adam", [](TrainConfig& c) { c.optimizer = OptimizerKind::adam; });
  with("rmsprop", [](TrainConfig& c) { c.optimizer = OptimizerKind::rmsprop; });
  with("one control variate", [](TrainConfig& c) { c.baseline = LatentBaseline::global; });
  with("no control variate", [](TrainConfig& c) { c.baseline = LatentBaseline::none; });
  with("tanh", [](TrainConfig& c) { c.model.activation = Activation::tanh; });
}

// Sums travel in several blocks, and tiles are chosen otherwise for fewer rows.
TEST_F(CudaShareTest, LargeNetworksAndBatches) {
  TrainConfig c = config();
  c.model.latent = 10;
  c.model.hidden = {1000, 600};
  c.model.encoder_hidden = {700, 300};
  c.batch = 1001;
  c.refine.step_size = 0.01;
  const DataSet many = made_up_data(ModelKind::vae, 1200, 784);
  expect_same_on_ranks(c, many, {2, 3});
}

// More iterations than lie on the device at a time, in other parts on ranks.
TEST_F(CudaShareTest, GoesOnOnAnotherNumberOfRanks) {
  const DataSet some = data();
  const TrainConfig c = config();
  Runs one(c, some, {1}, by_products);
  const TrainState at_first = learned_by(one, 1100).state, at_second = learned_by(one, 7).state;
  TrainState stopped;
  ThreadRanks::run(3, [&](Ranks& ranks) {
    Runs shared(c, some, {1}, by_products, &ranks);
    TrainMetrics ignored;
    shared.train(700, {&ignored, 1});
    const TrainState state = learned_by(shared, 400).state;
    expect_same(at_first, state);
    if (ranks.rank() == 0) stopped = state;
  });
  ThreadRanks::run(2, [&](Ranks& ranks) {
    Runs shared(c, some, {1}, by_products, &ranks);
    shared.restore(stopped, 0);
    expect_same(at_second, learned_by(shared, 7).state);
  });
  Runs again(c, some, {1}, by_products);
  again.restore(stopped, 0);
  expect_same(at_second, learned_by(again, 7).state);
}

TEST_F(CudaShareTest, AllRanksSayWhatEndedTheRun) {
  TrainConfig c = config();
  c.rate_model = 1e38;
  const DataSet some = data();
  Runs one(c, some, {1}, by_products);
  TrainMetrics ignored;
  one.train(30, {&ignored, 1});
  EXPECT_NE(one.failure(0), "");
  ThreadRanks::run(3, [&](Ranks& ranks) {
    Runs shared(c, some, {1}, by_products, &ranks);
    TrainMetrics metrics;
    shared.train(30, {&metrics, 1});
    EXPECT_EQ(shared.failure(0), one.failure(0));
  });
}

// A refinement in one kernel is not shared.
TEST_F(CudaShareTest, SmallNetworksAreNotShared) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  const DataSet some = data();
  ThreadRanks::run(2, [&](Ranks& ranks) {
    EXPECT_FALSE(Runs(config(), some, {1}, {PathKind::registers}, &ranks).ranks_share_iterations());
  });
}

}  // namespace
}  // namespace hone::test
