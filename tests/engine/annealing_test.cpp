// Annealed importance sampling of latent-variable models, against the exact evidence, quadrature, and upper bounds on
// data simulated from the model.

#include <gtest/gtest.h>

#include "tests/engine/tiny_model.hpp"

namespace hone::test {
namespace {

// Many annealings of one datum, each with random numbers of its own: the mean of w is p(x), here by quadrature.
void expect_unbiased(ModelKind kind, const std::vector<double>& x, std::uint64_t& proposals_lost) {
  const auto pixels = static_cast<int>(x.size());
  const std::vector<double> values = repeated(x, 3000);
  const DataSet data = kind == ModelKind::vae ? binary_data(values, pixels) : DataSet(values, ImageShape{1, pixels});
  TinyModel model(kind);
  const auto engine = model.engine(data);
  AnnealingTask task;
  task.config = {10, 2, 2};
  Moments weight;
  const double exact = std::log(model.evidence(x));
  for (const AnnealedPoint& point : engine->anneal(data, task, {})) {
    weight.add(std::exp(point.estimate.log_likelihood - exact));
    proposals_lost += static_cast<std::uint64_t>(point.rejected_nonfinite);
  }
  EXPECT_LT(std::abs(weight.mean() - 1), 4 * weight.estimate().se);
  EXPECT_LT(weight.estimate().se, 0.01);
}

TEST(EngineAnnealing, WeightsAreUnbiasedByQuadrature) {
  std::uint64_t lost = 0;
  expect_unbiased(ModelKind::vae, {1, 0, 1, 1}, lost);
  expect_unbiased(ModelKind::poisson_mf, {0, 1, 3, 0, 2}, lost);
  EXPECT_EQ(lost, 0u);
}

struct Bounds {
  Moments lower, upper, gap;
};
Bounds bounds(Engine& engine, const SimulatedData& made, int steps) {
  AnnealingTask task;
  task.config.steps = steps;
  const auto lower = engine.anneal(made.data, task, {});
  task.posterior_draws = made.z;
  const auto upper = engine.anneal(made.data, task, {});
  Bounds b;
  for (std::size_t i = 0; i < lower.size(); ++i) {
    b.lower.add(lower[i].estimate.log_likelihood);
    b.upper.add(upper[i].estimate.log_likelihood);
    b.gap.add(upper[i].estimate.log_likelihood - lower[i].estimate.log_likelihood);
  }
  return b;
}

// An engine whose decoder has weights as large as training makes them.
std::unique_ptr<Engine> wide_engine(const TrainConfig& config, const DataSet& data, double size) {
  auto engine = make_cpu_engine(config, data, {});
  TrainState state = engine->save();
  for (NamedArray& array : state.arrays) {
    if (!array.name.starts_with("decoder.weight")) continue;
    auto& weights = std::get<std::vector<float>>(array.values);
    std::vector<double> normal(weights.size());
    PhiloxSource(9).normals({.purpose = Purpose::start, .step = static_cast<std::uint32_t>(array.name.back())}, normal);
    const double scale = size / std::sqrt(static_cast<double>(array.shape[0]));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(scale * normal[i]);
  }
  engine->restore(state);
  return engine;
}

TrainConfig config_of(ModelKind kind, int latent, std::vector<int> hidden) {
  TrainConfig config = TrainConfig::paper();
  config.model = {kind, latent, std::move(hidden), {4}, Activation::tanh};
  config.model.initial = InitialWeights::paper;
  config.batch = 1;
  return config;
}

// Gaussian matrix factorization in 20 dimensions, whose evidence is known: both bounds hold, and lie within 0.1.
TEST(EngineAnnealing, BoundsHoldTheExactEvidence) {
  const DataSet start(std::vector<double>(60), ImageShape{1, 60});
  const auto engine = wide_engine(config_of(ModelKind::gaussian_mf, 20, {}), start, 0.4);
  const SimulatedData made = engine->simulate(100);
  EvaluationConfig cheap;
  cheap.samples = 10;
  cheap.proposals = {true, false, false};
  Moments exact;
  for (const PointEvaluation& point : engine->evaluate(made.data, cheap, {})) exact.add(point.exact.value());
  const Bounds coarse = bounds(*engine, made, 100), fine = bounds(*engine, made, 1500);
  EXPECT_LT(coarse.lower.mean(), fine.lower.mean());
  EXPECT_GT(coarse.upper.mean(), fine.upper.mean());
  EXPECT_NEAR(fine.lower.mean(), exact.mean(), 0.1);
  EXPECT_NEAR(fine.upper.mean(), exact.mean(), 0.1);
  EXPECT_LT(coarse.lower.mean(), exact.mean());
  EXPECT_GT(coarse.upper.mean(), exact.mean());
  EXPECT_LT(fine.gap.mean(), 0.5 * coarse.gap.mean());
}

// Models without an exact evidence: the gap between the bounds closes with more steps.
TEST(EngineAnnealing, TheGapClosesWithMoreSteps) {
  const std::vector<TrainConfig> configs = {config_of(ModelKind::vae, 10, {30}),
                                            config_of(ModelKind::logistic_mf, 50, {})};
  for (const TrainConfig& config : configs) {
    const auto engine = wide_engine(config, binary_data(std::vector<double>(80, 1), 80), 2);
    const SimulatedData made = engine->simulate(50);
    const Bounds coarse = bounds(*engine, made, 30), fine = bounds(*engine, made, 1000);
    EXPECT_GT(coarse.gap.mean(), 4 * coarse.gap.estimate().se);
    EXPECT_LT(fine.gap.mean(), 0.5 * coarse.gap.mean());
    EXPECT_LT(std::abs(fine.gap.mean()), 0.1 + 3 * fine.gap.estimate().se);
    EXPECT_GT(fine.gap.mean(), -4 * fine.gap.estimate().se);
  }
}

// The frequencies of all data of three pixels against their evidence.
TEST(EngineAnnealing, SimulatedDataFollowTheModel) {
  constexpr int count = 20'000;
  TinyModel model(ModelKind::vae);
  const auto engine = model.engine(binary_data({1, 0, 1}, 3));
  const SimulatedData made = engine->simulate(count);
  ASSERT_EQ(made.data.size(), count);
  ASSERT_EQ(made.z.cols(), count);
  std::vector<int> indices(count), seen(8);
  for (int n = 0; n < count; ++n) indices[n] = n;
  Matrix<double> x(3, count);
  made.data.expand(indices, x.view());
  for (int n = 0; n < count; ++n) ++seen[static_cast<int>(4 * x(0, n) + 2 * x(1, n) + x(2, n))];
  for (int which = 0; which < 8; ++which) {
    const double p = model.evidence({which / 4 * 1.0, which / 2 % 2 * 1.0, which % 2 * 1.0});
    EXPECT_NEAR(seen[which], count * p, 4 * std::sqrt(count * p * (1 - p))) << which;
  }
  TinyModel counts(ModelKind::poisson_mf);
  const auto poisson = counts.engine(DataSet(std::vector<double>{1, 0, 1}, ImageShape{1, 3}));
  const SimulatedData numbers = poisson->simulate(count);
  numbers.data.expand(indices, x.view());
  int zeros = 0, typical = 0;
  for (int n = 0; n < count; ++n) {
    zeros += x(0, n) == 0 && x(1, n) == 0 && x(2, n) == 0;
    typical += x(0, n) == 1 && x(1, n) == 2 && x(2, n) == 0;
  }
  for (const auto& [found, datum] : {std::pair{zeros, std::vector<double>{0, 0, 0}}, {typical, {1, 2, 0}}}) {
    const double p = counts.evidence(datum);
    EXPECT_GT(found, 100);
    EXPECT_NEAR(found, count * p, 4 * std::sqrt(count * p * (1 - p)));
  }
}

TEST(EngineAnnealing, NumbersDoNotDependOnThreadsOrOnLaterData) {
  std::vector<double> values(4 * 170);
  PhiloxSource(1).uniforms({Purpose::synthesize}, values);
  for (double& x : values) x = x < 0.5;
  const DataSet data = binary_data(values, 4);
  TinyModel model(ModelKind::vae);
  AnnealingTask task;
  task.config = {20, 3, 2};
  const auto reference = model.engine(data)->anneal(data, task, {});
  const auto equal = [](const AnnealedPoint& a, const AnnealedPoint& b) {
    return a.estimate.log_likelihood == b.estimate.log_likelihood && a.acceptance == b.acceptance;
  };
  for (const int threads : {2, 3})
    EXPECT_TRUE(std::ranges::equal(model.engine(data, threads)->anneal(data, task, {}), reference, equal));
  for (const int points : {1, 73, 100, 169, 170, 1000}) {
    task.points = points;
    int told = 0;
    const auto fewer = model.engine(data, 2)->anneal(data, task, [&](int done) { told = done; });
    EXPECT_EQ(fewer.size(), static_cast<std::size_t>(std::min(points, 170)));
    EXPECT_EQ(told, std::min(points, 170));
    EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), reference.begin(), equal)) << points;
  }
  task.points.reset();
  for (const auto& [first, end] : {std::pair(0, 50), std::pair(50, 150), std::pair(150, 170)}) {
    task.first = first;
    const auto part = model.engine(data, 2)->anneal(data.slice(first, end), task, {});
    EXPECT_TRUE(std::equal(part.begin(), part.end(), reference.begin() + first, equal)) << first;
  }
}

// Where log p(x | z) overflows, no chain has weight. Such points are counted, and nothing crashes.
TEST(EngineAnnealing, PointsWithoutWeightAreCounted) {
  const DataSet data(std::vector<double>(60, 1), ImageShape{1, 20});
  const auto engine = wide_engine(config_of(ModelKind::gaussian_mf, 4, {}), data, 1e25);
  AnnealingTask task;
  task.config = {10, 2, 2};
  const AnnealingSummary summary = summarize(engine->anneal(data, task, {}), task.config);
  EXPECT_EQ(summary.points_without_weight, 3);
  EXPECT_EQ(summary.log_likelihood.mean, -infinity);
}

}  // namespace
}  // namespace hone::test
