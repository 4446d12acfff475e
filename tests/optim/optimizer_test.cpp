#include "hone/optim/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/family/mixture.hpp"

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
  EXPECT_NEAR(adam_step(0.1, 4.0, AdamCorrection(1), first, second), 0.1, 1e-9);  // the first step has the length of the rate
  const double m = (0.9 * 0.4 + 0.1 * -2) / (1 - 0.81);
  const double v = (0.999 * 0.016 + 0.001 * 4) / (1 - 0.999 * 0.999);
  EXPECT_NEAR(adam_step(0.1, -2.0, AdamCorrection(2), first, second), 0.1 * m / (std::sqrt(v) + 1e-8), 1e-12);
}

TEST(Decay, ActsAfterWholeIntervals) {
  EXPECT_EQ(decay_factor(0.9, 2000, 1), 1);
  EXPECT_EQ(decay_factor(0.9, 2000, 2000), 1);
  EXPECT_DOUBLE_EQ(decay_factor(0.9, 2000, 2001), 0.9);
  EXPECT_DOUBLE_EQ(decay_factor(0.9, 2000, 4001), 0.81);
  EXPECT_EQ(decay_factor(0.9, 0, 4001), 1);
}

TEST(Optimizer, UsesOneRateARoleAndHoldsWeights) {
  OptimizerConfig config;
  config.rate_location = 0.2;
  config.rate_scale = 0.04;
  config.rate_weight = 0.006;
  config.weights_from = 1;
  MixtureFamily q(1, 2, Covariance::diagonal);
  const std::vector<double> before(q.parameters().begin(), q.parameters().end());
  const std::vector<double> ones(before.size(), 1.0);
  Optimizer optimizer(config, q);
  optimizer.step(q, ones, 1);
  EXPECT_NEAR(q.mean(0)[0] - before[0], 0.1, 1e-12);  // η / (1 + 1)
  EXPECT_NEAR(q.scale(1)[0] - before[3], 0.02, 1e-12);
  EXPECT_EQ(q.logits()[0], before[4]);
  optimizer.step(q, ones, 2);
  EXPECT_NEAR(q.logits()[0] - before[4], 0.003, 1e-12);
}

TEST(Optimizer, RefusesImpossibleRates) {
  const MixtureFamily q(1, 2, Covariance::diagonal);
  EXPECT_THROW(Optimizer({.rate_scale = -1}, q), InputError);
  EXPECT_THROW(Optimizer({.decay = 0}, q), InputError);
  EXPECT_THROW(Optimizer({.rate_location = std::nan("")}, q), InputError);
}

}  // namespace
}  // namespace hone
