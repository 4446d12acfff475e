// Annealed importance sampling: the schedule, the change of temperature, and unbiased weights in both directions.

#include "hone/assess/annealing.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/assess/annealing_parts.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

// x | z ~ N(z, s²) in every dimension, z ~ N(0, I): posterior N(x / (1 + s²), s² / (1 + s²)), evidence N(x; 0, 1 + s²).
class Conjugate final : public Target {
 public:
  Conjugate(int dimension, double x, double s) : dimension_(dimension), x_(x), s_(s) {}
  int dimension() const override { return dimension_; }
  double log_evidence() const {
    return -0.5 * dimension_ * (log_two_pi + std::log(1 + square(s_)) + square(x_) / (1 + square(s_)));
  }
  double posterior_mean() const { return x_ / (1 + square(s_)); }
  double posterior_sd() const { return s_ / std::sqrt(1 + square(s_)); }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    for (int c = 0; c < z.cols(); ++c) {
      if (wants_value(want)) value[c] = 0;
      for (int d = 0; d < dimension_; ++d) {
        const double shift = (x_ - z(d, c)) / s_;
        if (wants_value(want)) value[c] -= 0.5 * (square(z(d, c)) + square(shift)) + log_two_pi + std::log(s_);
        if (wants_gradient(want)) gradient(d, c) = shift / s_ - z(d, c);
      }
    }
  }

 private:
  int dimension_;
  double x_, s_;
};

TEST(Annealing, TheScheduleGoesFromThePriorToThePosterior) {
  for (const int steps : {1, 2, 7, 1500}) {
    const std::vector<double> schedule = annealing_schedule(steps);
    ASSERT_EQ(schedule.size(), static_cast<std::size_t>(steps) + 1);
    EXPECT_EQ(schedule.front(), 0);
    EXPECT_EQ(schedule.back(), 1);
    for (int k = 1; k <= steps; ++k) EXPECT_GT(schedule[k], schedule[k - 1]);
  }
}

TEST(Annealing, ConfigurationsThatCannotBeAreRefused) {
  EXPECT_THROW(check(AnnealingConfig{0, 8, 3}), InputError);
  EXPECT_THROW(check(AnnealingConfig{1 << 24, 8, 3}), InputError);
  EXPECT_THROW(check(AnnealingConfig{10, 0, 3}), InputError);
  EXPECT_THROW(check(AnnealingConfig{10, 8, 0}), InputError);
}

TEST(Annealing, AnotherTemperatureIsThatOfTheSameLikelihood) {
  constexpr double likelihood = -123.4, slope = 5.6, z = 0.7, prior = -1.2;
  const Retemper change{0.3, 0.8};
  EXPECT_NEAR(change.value(0.3 * likelihood + prior, prior), 0.8 * likelihood + prior, 1e-12);
  EXPECT_NEAR(change.gradient(0.3 * slope - z, z), 0.8 * slope - z, 1e-12);
  EXPECT_NEAR(change.log_likelihood(0.3 * likelihood + prior, prior), likelihood, 1e-11);
  EXPECT_EQ(change.value(-infinity, prior), -infinity);
}

TEST(Annealing, UncertaintyFromWeights) {
  const std::vector<double> weights = {1, 2, 6};
  std::vector<double> logs;
  for (const double w : weights) logs.push_back(std::log(w));
  const ImportanceEstimate forward = annealed_estimate(logs, AnnealingPass::forward);
  EXPECT_NEAR(forward.log_likelihood, std::log(3), 1e-14);
  Moments moments;
  for (const double w : weights) moments.add(w);
  EXPECT_NEAR(relative_variance(forward, 3), moments.variance() / 3 / 9, 1e-14);
  EXPECT_TRUE(std::isnan(relative_variance(annealed_estimate(std::vector{0.5}, AnnealingPass::forward), 1)));
  const double inverse = (1 + 0.5 + 1 / 6.0) / 3;
  EXPECT_NEAR(annealed_estimate(logs, AnnealingPass::backward).log_likelihood, -std::log(inverse), 1e-14);
}

constexpr int unbiased_points = 2000 * annealing_group;

void expect_one(const Moments& ratio) {
  EXPECT_LT(std::abs(ratio.mean() - 1), 4 * ratio.estimate().se);
  EXPECT_LT(ratio.estimate().se, 0.012);
}

// Weights of many single chains with few, coarse steps: E[w] = p(x) however badly the chains mix. A pass whose steps
// were not invariant, or whose shares were one level off, is many standard errors away.
TEST(Annealing, WeightsAreUnbiased) {
  const Conjugate target(2, 1.5, 0.5);
  const PhiloxSource random(5);
  for (const int steps : {1, 2, 5, 12}) {
    Annealer annealer(target, {steps, 1, 3}, random);
    Moments ratio;
    for (int first = 0; first < unbiased_points; first += annealing_group)
      for (const AnnealedPoint& point : annealer.forward(first, annealing_group, annealing_group))
        ratio.add(std::exp(point.estimate.log_likelihood - target.log_evidence()));
    SCOPED_TRACE(steps);
    expect_one(ratio);
  }
}

// From exact draws of the posterior, E[1 / w] = 1 / p(x). (With fewer steps 1 / w has too long a tail to be averaged.)
TEST(Annealing, InverseWeightsAreUnbiasedBackward) {
  const Conjugate target(2, 1.5, 0.5);
  const PhiloxSource random(5);
  for (const int steps : {12, 40}) {
    Annealer annealer(target, {steps, 1, 3}, random);
    Moments ratio;
    Matrix<double> draws(2, annealing_group);
    for (int first = 0; first < unbiased_points; first += annealing_group) {
      random.normals({Purpose::synthesize, 0, static_cast<std::uint32_t>(first)}, draws.view().flat());
      for (double& z : draws.view().flat()) z = target.posterior_mean() + target.posterior_sd() * z;
      for (const AnnealedPoint& point : annealer.backward(first, draws, annealing_group))
        ratio.add(std::exp(target.log_evidence() - point.estimate.log_likelihood));
    }
    SCOPED_TRACE(steps);
    expect_one(ratio);
  }
}

// The first points of a group get the same numbers as when the whole group is annealed.
TEST(Annealing, AllOfAGroupTunesTheStepSizes) {
  const Conjugate target(3, 0.5, 0.3);
  const PhiloxSource random(6);
  Annealer annealer(target, {30, 2, 2}, random);
  const auto all = annealer.forward(50, 40, 40), few = annealer.forward(50, 40, 7);
  ASSERT_EQ(few.size(), 7u);
  for (std::size_t i = 0; i < few.size(); ++i)
    EXPECT_EQ(few[i].estimate.log_likelihood, all[i].estimate.log_likelihood);
  EXPECT_GT(all[0].acceptance, 0.5);
}

TEST(Annealing, SummaryOfPoints) {
  std::vector<AnnealedPoint> points(4);
  for (int i = 0; i < 4; ++i) points[i] = {{-10.0 - i, 5}, 0.8, i};
  const AnnealingSummary summary = summarize(points, {100, 8, 3});
  EXPECT_EQ(summary.points, 4);
  EXPECT_NEAR(summary.log_likelihood.mean, -11.5, 1e-14);
  EXPECT_NEAR(summary.log_likelihood.se, std::sqrt(5.0 / 3 / 4), 1e-14);
  EXPECT_NEAR(summary.chain_se, std::sqrt(4 * (8 / 5.0 - 1) / 7) / 4, 1e-14);
  EXPECT_NEAR(summary.effective_chains, 5, 1e-14);
  EXPECT_EQ(summary.rejected_nonfinite, 6);
  points[2].estimate = {-infinity, 0};
  const AnnealingSummary lost = summarize(points, {100, 8, 3});
  EXPECT_EQ(lost.points_without_weight, 1);
  EXPECT_EQ(lost.log_likelihood.mean, -infinity);
  EXPECT_TRUE(std::isnan(lost.log_likelihood.se));
}

}  // namespace
}  // namespace hone
