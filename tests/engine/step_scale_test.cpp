// Steps in proportion to q's standard deviations: the scales by hand, the scaled target against differences, the chains
// against posteriors that are known exactly.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/engine/engine_internals.hpp"
#include "hone/engine/frozen.hpp"
#include "hone/engine/step_scales.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

TEST(StepScales, AreRootMeanSquaresOverTheSmallest) {
  Matrix<double> sd(3, 2);
  sd(0, 0) = 0.3, sd(0, 1) = 0.4;  // 0.25 · 2 in squares
  sd(1, 0) = 3, sd(1, 1) = 4;
  sd(2, 0) = 50, sd(2, 1) = 0.1;
  const std::vector<double> scales = step_scales(sd);
  EXPECT_EQ(scales[0], 1);
  EXPECT_NEAR(scales[1], 10, 1e-12);
  EXPECT_EQ(scales[2], widest_step);
}

// log p(z) = −Σ_d (d + 1 + datum) z_d² / 2
class Ellipses final : public Target {
 public:
  int dimension() const override { return 2; }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    compute_data(z, want, value, gradient, {});
  }
  void compute_data(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                    std::span<const std::uint32_t> datum) const override {
    for (int c = 0; c < z.cols(); ++c) {
      if (wants_value(want)) value[c] = 0;
      for (int d = 0; d < 2; ++d) {
        const double precision = d + 1 + (datum.empty() ? c : static_cast<int>(datum[c]));
        if (wants_value(want)) value[c] -= 0.5 * precision * square(z(d, c));
        if (wants_gradient(want)) gradient(d, c) = -precision * z(d, c);
      }
    }
  }
};

TEST(StepScales, TheTargetIsTheSameOneInOtherCoordinates) {
  const Ellipses ellipses;
  const std::vector<double> scales = {1, 7};
  const ScaledTarget scaled(ellipses, scales);
  Matrix<double> z(2, 2), gradient(2, 2);
  PhiloxSource(1).normals({Purpose::start}, z.view().flat());
  const std::vector<std::uint32_t> datum = {5, 2};
  std::vector<double> expected(2), value(2);
  ellipses.evaluate(z, Want::both, expected, gradient, datum);
  Matrix<double> u = z, slope = gradient;
  scaled.to_scaled(u, slope);
  EXPECT_DOUBLE_EQ(u(1, 0), z(1, 0) / 7);
  Matrix<double> found(2, 2);
  scaled.evaluate(u, Want::both, value, found, datum);
  for (int c = 0; c < 2; ++c) {
    EXPECT_DOUBLE_EQ(value[c], expected[c]);
    for (int d = 0; d < 2; ++d) {
      EXPECT_DOUBLE_EQ(found(d, c), slope(d, c));
      const double by_differences = derivative_in(u(d, c), [&] {
        scaled.evaluate(u, Want::value, value, {}, datum);
        return value[c];
      });
      EXPECT_NEAR(found(d, c), by_differences, 1e-8 * (1 + std::abs(by_differences)));
    }
  }
  scaled.from_scaled(u, slope);
  for (int c = 0; c < 2; ++c)
    for (int d = 0; d < 2; ++d) {
      EXPECT_DOUBLE_EQ(u(d, c), z(d, c));
      EXPECT_DOUBLE_EQ(slope(d, c), gradient(d, c));
    }
}

// A `gaussian` matrix factorization whose weights are given: posterior precision I + W Wᵀ / 0.01, mean along W x.
struct NarrowAndWide {
  static constexpr int pixels = 4, points = 40;
  static constexpr std::array<double, 2 * pixels> w = {4, -2, 3, 1, 0.06, 0.03, -0.05, 0.04};

  NarrowAndWide() : data(values(), ImageShape{1, pixels}) {
    config.model = {
        .kind = ModelKind::mf, .latent = 2, .hidden = {}, .encoder_hidden = {}, .likelihood = Density::gaussian};
    config.objective = by_vcd();
    config.kernel = hmc({.leapfrog = 5, .jitter = 2});
    config.refine = {.steps = 12, .adapt = Adapt::off, .step_size = 0.009, .acceptance = 0.9};
    config.batch = points;
    config.rate_mean = config.rate_scale = config.rate_model = 0;
    config.precision = Precision::float64;
    double m[2][2] = {{1, 0}, {0, 1}};
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        for (int p = 0; p < pixels; ++p) m[i][j] += w[i * pixels + p] * w[j * pixels + p] / 0.01;
    const double determinant = m[0][0] * m[1][1] - m[0][1] * m[1][0];
    covariance = {m[1][1] / determinant, -m[0][1] / determinant, -m[1][0] / determinant, m[0][0] / determinant};
  }

  static std::vector<double> values() {
    std::vector<double> x(points * pixels);
    PhiloxSource(7).normals({Purpose::synthesize}, x);
    for (double& value : x) value *= 0.1;
    double mean[pixels] = {};
    for (std::size_t i = 0; i < x.size(); ++i) mean[i % pixels] += x[i] / points;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= mean[i % pixels];  // the model has no intercept to learn it
    return x;
  }

  // In q's first dimension the mean is near the posterior's and the deviation 0.02; in the second 1.5 and 0.6.
  std::unique_ptr<Engine> engine(EngineOptions options = {}, EngineInternals internals = {}) const {
    auto made = make_engine(EngineKind::cpu, config, data, std::move(options), std::move(internals));
    TrainState state = made->save();
    array_of<double>(state, "decoder.weight[0]") = std::vector<double>(w.begin(), w.end());
    for (const char* name : {"mean.weight[0]", "sd.weight[0]"}) std::ranges::fill(array_of<double>(state, name), 0.0);
    array_of<double>(state, "mean.bias[0]") = {0, 1.5};
    array_of<double>(state, "sd.bias[0]") = {-4, -0.2};
    made->restore(state);
    return made;
  }

  // Of z_t − E[z | x] in the posterior's own directions: mean and mean square, each over its exact deviation.
  struct Seen {
    Moments mean[2], square[2];
  };
  Seen seen(int iterations) const {
    Seen result;
    const std::vector<double> x = values();
    EngineOptions options;
    options.minibatches = std::make_unique<InOrder>();
    EngineInternals internals;
    internals.observe = [&](const IterationView& view) {
      for (int c = 0; c < points; ++c) {
        double b[2] = {};
        for (int i = 0; i < 2; ++i)
          for (int p = 0; p < pixels; ++p) b[i] += w[i * pixels + p] * x[c * pixels + p] / 0.01;
        for (int i = 0; i < 2; ++i) {
          const double mean = covariance[2 * i] * b[0] + covariance[2 * i + 1] * b[1];
          const double r = (view.evidence.refined.z(i, c) - mean) / std::sqrt(covariance[3 * i]);
          result.mean[i].add(r);
          result.square[i].add(hone::square(r));
        }
      }
    };
    TrainMetrics metrics;
    engine(std::move(options), std::move(internals))->train(static_cast<std::uint32_t>(iterations), metrics);
    return result;
  }

  struct InOrder final : Minibatches {
    void fill(std::uint32_t, std::span<int> indices) override {
      for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int>(i);
    }
  };

  TrainConfig config;
  std::array<double, 4> covariance;
  DataSet data;
};

// The second dimension is forty times as wide as the first.
TEST(StepScale, ChainsFindThePosteriorInNarrowAndWideDimensions) {
  NarrowAndWide world;
  EXPECT_GT(std::sqrt(world.covariance[3] / world.covariance[0]), 30);
  for (const SomeKernel& kernel : {world.config.kernel, mala(), random_walk()}) {
    world.config.step_scale = StepScale::q;
    world.config.kernel = kernel;
    const bool fast = kernel->as_hmc();
    world.config.refine.steps = fast ? 12 : 150;
    if (!fast) world.config.refine.step_size = kernel->wants() == Want::value ? 6e-4 : 3e-4;
    const NarrowAndWide::Seen scaled = world.seen(fast ? 500 : 100);
    for (int d = 0; d < 2; ++d) {
      const Estimate mean = scaled.mean[d].estimate(), square = scaled.square[d].estimate();
      EXPECT_NEAR(mean.mean, 0, 4 * mean.se) << d;
      EXPECT_NEAR(square.mean, 1, 4 * square.se) << d;
      if (fast) {
        EXPECT_LT(square.se, 0.012) << d;
      }
    }
    world.config.step_scale = StepScale::same;
    EXPECT_GT(world.seen(5).mean[1].mean(), 0.5)
        << "where the narrow dimension sets the step, chains lag in the wide one";
  }
}

TEST(StepScale, OfOneDimensionChangesNothing) {
  NarrowAndWide world;
  TrainConfig config = world.config;
  config.model.latent = 1;
  config.rate_mean = config.rate_scale = config.rate_model = 1e-3;
  TrainMetrics metrics;
  const auto same = make_engine(EngineKind::cpu, config, world.data);
  same->train(20, metrics);
  config.step_scale = StepScale::q;
  const auto scaled = make_engine(EngineKind::cpu, config, world.data);
  scaled->train(20, metrics);
  expect_same(same->save(), scaled->save());
}

TEST(StepScale, HasTheSameBitsOnAnyNumberOfThreadsAndAfterAStop) {
  NarrowAndWide world;
  TrainConfig config = world.config;
  config.model = {.latent = 3, .hidden = {6}, .encoder_hidden = {5}, .likelihood = Density::gaussian};
  config.step_scale = StepScale::q;
  config.refine = {.steps = 3, .adapt = Adapt::inside, .step_size = 0.05, .acceptance = 0.9};
  config.batch = 15;
  config.rate_mean = config.rate_scale = config.rate_model = 1e-3;
  config.precision = Precision::float32;
  TrainMetrics metrics;
  const auto whole = make_engine(EngineKind::cpu, config, world.data);
  whole->train(60, metrics);
  for (const int threads : {2, 3}) {
    const auto before = make_engine(EngineKind::cpu, config, world.data, {.threads = threads});
    before->train(25, metrics);
    const auto after = make_engine(EngineKind::cpu, config, world.data, {.threads = 4 - threads});
    after->restore(before->save());
    after->train(35, metrics);
    expect_same(whole->save(), after->save());
  }
  config.step_scale = StepScale::same;
  const auto other = make_engine(EngineKind::cpu, config, world.data);
  other->train(60, metrics);
  TrainState with = whole->save(), without = other->save();
  const std::string weights = "decoder.weight[0]";
  EXPECT_NE(array_of<float>(with, weights), array_of<float>(without, weights)) << "it has an effect";
}

// A step size that was found with scales is that of the narrowest dimension, so it suits a kernel without scales.
TEST(StepScale, TheStepSizeOfACheckpointSuitsItsUse) {
  NarrowAndWide world;
  world.config.step_scale = StepScale::q;
  world.config.refine.adapt = Adapt::inside;
  world.config.refine.step_size = 0.25;
  const auto engine = world.engine();
  TrainMetrics metrics;
  engine->train(300, metrics);
  engine->train(300, metrics = {});
  EXPECT_NEAR(metrics.acceptance.mean(), 0.9, 0.02);
  const auto frozen = freeze(world.config, engine->save(), world.data);
  const std::vector<int> indices = {0, 1, 2, 3, 4, 5, 6, 7};
  Matrix<double> z(2, 8);
  const PhiloxSource random(3);
  frozen->draw_q(world.data, indices, random, z);
  EXPECT_GT(frozen->refine(world.data, indices, 50, random, z, {}), 0.85);
}

TEST(StepScale, TheCudaEngineRefusesIt) {
  TrainConfig config;
  EXPECT_NO_THROW(check(config, EngineKind::cuda));
  config.step_scale = StepScale::q;
  EXPECT_NO_THROW(check(config, EngineKind::cpu));
  try {
    check(config, EngineKind::cuda);
    FAIL() << "no error";
  } catch (const KeyError& error) {
    EXPECT_EQ(error.key(), "step_scale");
  }
}

}  // namespace
}  // namespace hone::test
