// An engine trains a group of runs; a single run is a group of one.

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "hone/base/error.hpp"
#include "hone/engine/engine_internals.hpp"
#include "hone/objective/kl.hpp"
#include "tests/engine/support.hpp"

namespace hone::test {
namespace {

constexpr int pixels = 20, points = 60;
constexpr std::uint32_t iterations = 12;
const std::vector<std::uint64_t> seeds = {3, 5, 8};

DataSet made_up_data() {
  std::vector<double> values(static_cast<std::size_t>(points) * pixels);
  PhiloxSource(2).uniforms({Purpose::synthesize}, values);
  for (double& x : values) x = x < 0.4;
  return binary_data(values, pixels);
}

TrainConfig small() {
  TrainConfig config = TrainConfig::paper();
  config.model = {.latent = 3, .hidden = {7}, .encoder_hidden = {6}};
  config.model.initial = InitialWeights::paper;
  config.shared_until = 5;
  config.refine.steps = 2;
  config.batch = 15;
  return config;
}

// The library's own defaults, where α grows, weights are bounded and rates warm up.
TrainConfig small_by_default() {
  TrainConfig config;
  config.model = {.latent = 3, .hidden = {7}, .encoder_hidden = {6}};
  config.objective = std::make_shared<Vcd>(VcdConfig{.ramp = {.from = 2, .until = 9}, .score_bound = 3});
  config.warmup = {.until = 6};
  config.shared_until = 5;
  config.refine.steps = 2;
  config.batch = 15;
  return config;
}

void break_weights(TrainState& state) {
  for (float& x : array_of<float>(state, "decoder.weight[0]")) x = std::nanf("");
}

std::vector<double> log_likelihoods(Engine& engine, const DataSet& data, int run) {
  EvaluationConfig config;
  config.samples = 50;
  config.burn_in = config.kept = 3;
  std::vector<double> values;
  for (const PointEvaluation& point : engine.evaluate(data, config, {}, run))
    values.push_back(point.mixture.log_likelihood);
  return values;
}

void expect_same_figures(const TrainMetrics& expected, const TrainMetrics& found) {
  EXPECT_EQ(expected.elbo.mean(), found.elbo.mean());
  EXPECT_EQ(expected.vcd.mean(), found.vcd.mean());
  EXPECT_EQ(expected.acceptance.mean(), found.acceptance.mean());
  EXPECT_EQ(expected.elbo.count(), found.elbo.count());
}

TEST(EngineGroup, EachRunIsWhatItWouldBeAlone) {
  const DataSet data = made_up_data();
  const auto group = make_engine(EngineKind::cpu, small(), data, {.seeds = seeds, .threads = 2});
  ASSERT_EQ(group->runs(), 3);
  std::vector<TrainMetrics> metrics(seeds.size());
  group->train(iterations, metrics);
  EXPECT_EQ(group->iteration(), iterations);
  for (int run = 0; run < group->runs(); ++run) {
    TrainConfig config = small();
    config.seed = seeds[run];
    const auto alone = make_engine(EngineKind::cpu, config, data);
    TrainMetrics own;
    alone->train(iterations, own);
    expect_same_figures(own, metrics[run]);
    expect_same(alone->save(), group->save(run));
    EXPECT_EQ(alone->step_size(), group->step_size(run));
    EXPECT_EQ(log_likelihoods(*alone, data, 0), log_likelihoods(*group, data, run));
    EXPECT_EQ(alone->simulate(4).z.view().flat()[0], group->simulate(4, run).z.view().flat()[0]);
    const AnnealingTask task{.config = {.steps = 5, .chains = 2}, .points = 3};
    EXPECT_EQ(alone->anneal(data, task, {}).front().estimate.log_likelihood,
              group->anneal(data, task, {}, run).front().estimate.log_likelihood);
  }
}

TEST(EngineGroup, SchedulesContinueWithTheSameBits) {
  const DataSet data = made_up_data();
  const TrainConfig config = small_by_default();
  TrainMetrics ignored;
  const auto whole = make_engine(EngineKind::cpu, config, data);
  whole->train(iterations, ignored);
  for (const int threads : {1, 3}) {
    const auto first = make_engine(EngineKind::cpu, config, data, {.threads = threads});
    first->train(5, ignored);
    const auto second = make_engine(EngineKind::cpu, config, data, {.threads = threads});
    second->restore(first->save());
    second->train(iterations - 5, ignored);
    expect_same(whole->save(), second->save());
  }
}

TEST(EngineGroup, OneRunThatFailsLeavesTheOthersAlone) {
  const DataSet data = made_up_data();
  const auto whole = make_engine(EngineKind::cpu, small(), data, {.seeds = seeds});
  const auto group = make_engine(EngineKind::cpu, small(), data, {.seeds = seeds});
  TrainState good = group->save(1), broken = good;
  break_weights(broken);
  group->restore(broken, 1);
  std::vector<TrainMetrics> expected(seeds.size()), metrics(seeds.size());
  whole->train(iterations, expected);
  group->train(iterations, metrics);
  EXPECT_NE(group->failure(1).find("no longer finite"), std::string::npos) << group->failure(1);
  EXPECT_EQ(group->iteration(), iterations);
  for (const int run : {0, 2}) {
    EXPECT_EQ(group->failure(run), "");
    expect_same(whole->save(run), group->save(run));
  }
  good.iteration = iterations;
  group->restore(good, 1);
  EXPECT_EQ(group->failure(1), "");  // a restored run is sound again
  group->train(1, metrics);
  EXPECT_EQ(group->failure(1), "");
}

TEST(EngineGroup, ASingleRunThatFailsThrows) {
  const DataSet data = made_up_data();
  const auto engine = make_engine(EngineKind::cpu, small(), data);
  TrainState broken = engine->save();
  break_weights(broken);
  engine->restore(broken);
  TrainMetrics metrics;
  for (int attempt = 0; attempt < 2; ++attempt) try {
      engine->train(1, metrics);
      ADD_FAILURE() << "trained on weights that are not finite";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), engine->failure());
    }
}

TEST(EngineGroup, WhatIsForASingleRunRefusesSeveral) {
  const DataSet data = made_up_data();
  const auto group = make_engine(EngineKind::cpu, small(), data, {.seeds = seeds});
  TrainMetrics one;
  EXPECT_THROW(group->train(1, one), std::logic_error);
  const PhiloxSource random(1);
  EXPECT_THROW(make_engine(EngineKind::cpu, small(), data, {.seeds = seeds, .random = &random}), InputError);
  EXPECT_THROW(make_engine(EngineKind::cuda, small(), data, {.random = &random}), InputError);
}

TEST(EngineGroup, RefusesRunsAndMetricsThatDoNotExist) {
  const DataSet data = made_up_data();
  const auto group = make_engine(EngineKind::cpu, small(), data, {.seeds = seeds});
  std::vector<TrainMetrics> few(seeds.size() - 1);
  EXPECT_THROW(group->train(1, few), InputError);
  EXPECT_EQ(group->iteration(), 0u);
  const TrainState state = group->save();
  for (const int run : {-1, 3}) {
    EXPECT_THROW(group->step_size(run), InputError);
    EXPECT_THROW(group->failure(run), InputError);
    EXPECT_THROW(group->evaluate(data, {}, {}, run), InputError);
    EXPECT_THROW(group->anneal(data, {}, {}, run), InputError);
    EXPECT_THROW(group->simulate(1, run), InputError);
    EXPECT_THROW(group->save(run), InputError);
    EXPECT_THROW(group->restore(state, run), InputError);
  }
}

// Reads log q at z0 although E_q[log q] is exact; drops the first baseline that it gets and asks for another.
class OwnObjective final : public Objective {
 public:
  explicit OwnObjective(int least) : least_(least) {}
  std::unique_ptr<Objective> clone() const override { return std::make_unique<OwnObjective>(least_); }
  bool refines() const override { return false; }
  bool analytic(const Family&) const override { return true; }
  int least_draws() const override { return least_; }
  void use_baselines(const BaselineFactory& make) override {
    make(Term::first);
    baseline_ = make(Term::first);
  }
  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override {
    const int n = evidence.draws.count();
    std::vector<double> expected(n), f(n), centred(n);
    family.log_density(evidence.draws.z, Want::value, expected, {});
    EXPECT_EQ(evidence.log_q0, expected);
    for (int i = 0; i < n; ++i) f[i] = evidence.f0(i);
    baseline_->centre(evidence.draws, f, centred);
    family.add_draw_score(evidence.draws, centred, gradient);
    baseline_.reset();  // the run goes on without it
    baseline_ = make_baseline(BaselineKind::none, 0);
  }

 private:
  int least_;
  std::unique_ptr<Baseline> baseline_;
};

TEST(EngineObjective, OneOfTheCallersOwnMayDropItsBaselines) {
  const DataSet data = made_up_data();
  TrainConfig config = small();
  config.objective = std::make_shared<OwnObjective>(1);
  const auto engine = make_engine(EngineKind::cpu, config, data);
  TrainMetrics metrics;
  engine->train(3, metrics);
  TrainState state = engine->save();
  const auto kept = array_of<double>(state, "baseline.first");
  EXPECT_NE(kept.front(), 0);  // learned once
  engine->restore(state);
}

TEST(EngineObjective, RefusesThoseThatNeedSeveralDrawsPerDatum) {
  TrainConfig config = small();
  config.objective = std::make_shared<OwnObjective>(2);
  EXPECT_THROW(check(config), KeyError);
  config.objective =  // the engine has baselines of its own instead
      std::make_shared<Vcd>(VcdConfig{.baseline = BaselineKind::leave_one_out});
  EXPECT_EQ(config.objective->least_draws(), 2);
  EXPECT_NO_THROW(check(config));
  config.objective =
      std::make_shared<Kl>(KlConfig{.first_term = FirstTerm::score, .baseline = BaselineKind::leave_one_out});
  EXPECT_EQ(config.objective->least_draws(), 2);
  EXPECT_NO_THROW(check(config));
}

TEST(EngineKinds, ReplaysAndObserversGetTheCpu) {
  const DataSet data = made_up_data();
  int seen = 0;
  TrainMetrics metrics;
  make_engine(EngineKind::automatic, small(), data, {}, {.observe = [&seen](const IterationView&) { ++seen; }})
      ->train(2, metrics);
  EXPECT_EQ(seen, 2);
}

TEST(EngineKinds, TheCpuHasNoTf32) {
  TrainConfig config = small();
  config.precision = Precision::tf32;
  const DataSet data = made_up_data();
  EXPECT_THROW(make_engine(EngineKind::cpu, config, data), KeyError);
  EXPECT_THROW(make_cpu_engine(config, data, {}), KeyError);
}

TEST(EngineKinds, AutomaticIsWhatTheMachineHas) {
  const EngineKind expected = cuda_support().missing.empty() ? EngineKind::cuda : EngineKind::cpu;
  EXPECT_EQ(chosen_engine(EngineKind::automatic, small()), expected);
  TrainConfig exact = small();
  exact.precision = Precision::float64;  // only the cpu engine has it
  EXPECT_EQ(chosen_engine(EngineKind::automatic, exact), EngineKind::cpu);
  EXPECT_EQ(side_by_side(EngineKind::cpu, 4), 1);
  EXPECT_EQ(side_by_side(EngineKind::cuda, 4), 4);
}

}  // namespace
}  // namespace hone::test
