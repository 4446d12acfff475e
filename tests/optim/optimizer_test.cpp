#include "hone/optim/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/random.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/fit/fit.hpp"
#include "hone/objective/objective.hpp"
#include "hone/optim/update.hpp"
#include "hone/target/density.hpp"

namespace hone {
namespace {

TEST(RmsProp, FollowsThePaperByHand) {
  double g = 0.01;
  EXPECT_DOUBLE_EQ(rmsprop_step(0.1, 3.0, true, g), 0.1 * 3 / (1 + 3));  // G = g² at first
  EXPECT_DOUBLE_EQ(g, 9);
  EXPECT_DOUBLE_EQ(rmsprop_step(0.1, -1.0, false, g), -0.1 / (1 + std::sqrt(0.9 * 9 + 0.1)));
  EXPECT_DOUBLE_EQ(g, 8.2);
}

TEST(Adam, FollowsItsDefinition) {
  double first = 0, second = 0;
  EXPECT_NEAR(adam_step(0.1, 4.0, AdamCorrection(1), first, second), 0.1,
              1e-9);  // the first step has the length of the rate
  const double m = (0.9 * 0.4 + 0.1 * -2) / (1 - 0.81);
  const double v = (0.999 * 0.016 + 0.001 * 4) / (1 - 0.999 * 0.999);
  EXPECT_NEAR(adam_step(0.1, -2.0, AdamCorrection(2), first, second), 0.1 * m / (std::sqrt(v) + 1e-8), 1e-12);
}

// Ranges of elements: the same bits as element by element, nothing outside the range, and non-finite numbers are seen.
template <class Real>
void check_updates() {
  constexpr std::size_t size = 101;
  const Elements range{3, 98};
  std::vector<Real> gradient(size), first(size), second(size), theta(size);
  for (std::size_t i = 0; i < size; ++i) {
    gradient[i] = static_cast<Real>(std::sin(7.0 * static_cast<double>(i)) * 100);
    theta[i] = static_cast<Real>(i);
    second[i] = static_cast<Real>(0.5 * static_cast<double>(i));
  }
  const auto rate = static_cast<Real>(0.01);
  const AdamCorrection correction(3);
  for (const bool start : {true, false}) {
    auto m = first, g = second, x = theta, adam_g = second, adam_x = theta;
    EXPECT_TRUE(rmsprop_update(range, rate, start, {gradient, {}, g, x}));
    EXPECT_TRUE(
        adam_update(range, rate, correction, {.gradient = gradient, .first = m, .second = adam_g, .theta = adam_x}));
    for (std::size_t i = 0; i < size; ++i) {
      Real expected_g = second[i], expected_m = first[i], expected_v = second[i];
      const bool inside = i >= range.begin && i < range.end;
      EXPECT_EQ(x[i], inside ? theta[i] + rmsprop_step(rate, gradient[i], start, expected_g) : theta[i]);
      EXPECT_EQ(g[i], expected_g);
      EXPECT_EQ(adam_x[i],
                inside ? theta[i] + adam_step(rate, gradient[i], correction, expected_m, expected_v) : theta[i]);
    }
  }
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    for (const std::size_t at : {range.begin, std::size_t{50}, range.end - 1, range.end}) {
      auto g = second, x = theta;
      x[at] = static_cast<Real>(bad);
      EXPECT_EQ(rmsprop_update(range, rate, false, {gradient, {}, g, x}), at == range.end);
    }
}
TEST(Updates, Float) { check_updates<float>(); }
TEST(Updates, Double) { check_updates<double>(); }

TEST(Decay, ActsAfterWholeIntervals) {
  EXPECT_EQ(decay_factor(0.9, 2000, 1), 1);
  EXPECT_EQ(decay_factor(0.9, 2000, 2000), 1);
  EXPECT_DOUBLE_EQ(decay_factor(0.9, 2000, 2001), 0.9);
  EXPECT_DOUBLE_EQ(decay_factor(0.9, 2000, 4001), 0.81);
  EXPECT_EQ(decay_factor(0.9, 0, 4001), 1);
}

TEST(Ramp, IsZeroThenALineThenOne) {
  const Ramp ramp{.from = 100, .until = 300};
  EXPECT_EQ(ramp.at(1), 0);
  EXPECT_EQ(ramp.at(100), 0);
  EXPECT_DOUBLE_EQ(ramp.at(150), 0.25);
  EXPECT_EQ(ramp.at(300), 1);
  EXPECT_EQ(ramp.at(4000000000u), 1);
  EXPECT_EQ(Ramp{}.at(1), 1);
  const Ramp step{.from = 7, .until = 7};
  EXPECT_EQ(step.at(6), 0);
  EXPECT_EQ(step.at(7), 1);
  const Ramp warmup{.until = 4};
  EXPECT_DOUBLE_EQ(warmup.at(1), 0.25);
}

TEST(Optimizer, UsesOneRatePerRoleAndHoldsWeights) {
  OptimizerConfig config;
  config.rate_location = 0.2;
  config.rate_scale = 0.04;
  config.rate_weight = 0.006;
  config.weights_from = 1;
  MixtureFamily q(1, 2, Covariance::diagonal);
  const std::vector<double> before(q.parameters().begin(), q.parameters().end());
  const std::vector<double> ones(before.size(), 1.0);
  const auto optimizer = make_optimizer(config, q);
  optimizer->step(q, ones, 1);
  EXPECT_NEAR(q.mean(0)[0] - before[0], 0.1, 1e-12);  // η / (1 + 1)
  EXPECT_NEAR(q.scale(1)[0] - before[3], 0.02, 1e-12);
  EXPECT_EQ(q.logits()[0], before[4]);
  optimizer->step(q, ones, 2);
  EXPECT_NEAR(q.logits()[0] - before[4], 0.003, 1e-12);
}

// d/d log σ = σ d/dσ, and a step of log σ multiplies σ; means and off-diagonal elements move as before.
TEST(Optimizer, ScalesMoveByTheirLogarithms) {
  OptimizerConfig config{.rate_location = 0.2, .rate_scale = 0.2, .positive = PositiveSteps::logarithmic};
  GaussianFamily q(2, Covariance::full);
  q.scale()[0] = 3;
  const auto optimizer = make_optimizer(config, q);
  optimizer->step(q, std::vector<double>{1, 1, 2, 1, -5}, 1);
  EXPECT_NEAR(q.mean()[0], 0.1, 1e-12);
  EXPECT_NEAR(q.scale()[0], 3 * std::exp(0.2 * 6 / (1 + 6)), 1e-12);
  EXPECT_NEAR(q.scale()[1], 0.1, 1e-12);
  EXPECT_NEAR(q.scale()[2], std::exp(-0.2 * 5 / (1 + 5)), 1e-12);
}

TEST(Optimizer, RefusesImpossibleRates) {
  const MixtureFamily q(1, 2, Covariance::diagonal);
  EXPECT_THROW(make_optimizer({.rate_scale = -1}, q), InputError);
  EXPECT_THROW(make_optimizer({.decay = 0}, q), InputError);
  EXPECT_THROW(make_optimizer({.rate_location = std::nan("")}, q), InputError);
}

// A caller's own optimizer: plain gradient ascent.
class PlainAscent final : public Optimizer {
 public:
  explicit PlainAscent(double rate, int& steps) : rate_(rate), steps_(steps) {}
  void step(Family& family, std::span<const double> ascent, std::uint32_t) override {
    for (std::size_t i = 0; i < ascent.size(); ++i) family.parameters()[i] += rate_ * ascent[i];
    family.project();
    ++steps_;
  }

 private:
  double rate_;
  int& steps_;
};

TEST(Optimizer, CanBeTheCallersOwn) {
  const DensityTarget target(1, [](std::span<const double> z, std::span<double> gradient) {
    gradient[0] = 3 - z[0];
    return -0.5 * (z[0] - 3) * (z[0] - 3);
  });
  GaussianFamily q(1, Covariance::diagonal);
  const PhiloxSource random(1);
  int steps = 0;
  FitConfig config;
  config.draws_per_iteration = 20;
  Fit fit(target, q, config, random, std::make_unique<PlainAscent>(0.1, steps));
  for (int i = 0; i < 200; ++i) fit.step();
  EXPECT_EQ(steps, 200);
  EXPECT_NEAR(q.mean()[0], 3, 0.3);
}

}  // namespace
}  // namespace hone
