#include "hone/assess/divergence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/base/scalar.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/target/density.hpp"

namespace hone {
namespace {

// A half-normal with its normalising constant: log evidence 0.
auto normalised_half_normal() {
  return DensityTarget(1, [](std::span<const double> z, std::span<double> gradient) {
    gradient[0] = -z[0];
    return z[0] < 0 ? -infinity : -0.5 * z[0] * z[0] - 0.5 * std::log(std::numbers::pi / 2);
  });
}

TEST(EstimateDivergence, DrawsOutsideTheSupportNeverMakeTheElboTooHigh) {
  const auto target = normalised_half_normal();
  GaussianFamily q(1, Covariance::diagonal);  // half of it outside; restricted to the support it is the target
  const Divergence value = estimate_divergence(target, q, {}, PhiloxSource(1));
  EXPECT_NEAR(value.dropped_draws, 5000, 4 * 50);
  EXPECT_NEAR(value.elbo.mean, 0, 4 * std::sqrt(1.0 / 10000));
  EXPECT_NEAR(value.vcd.mean, 0, 1e-12);
  q.mean()[0] = 0.7;
  const Divergence shifted = estimate_divergence(target, q, {}, PhiloxSource(1));
  EXPECT_LT(shifted.elbo.mean, 0);
  EXPECT_GT(shifted.vcd.mean, 0);
}

TEST(EstimateDivergence, NothingInsideTheSupportIsNotAPerfectFit) {
  const auto target = normalised_half_normal();
  GaussianFamily q(1, Covariance::diagonal);
  q.mean()[0] = -60;
  const Divergence value = estimate_divergence(target, q, {}, PhiloxSource(1));
  EXPECT_EQ(value.elbo.mean, -infinity);
  EXPECT_TRUE(std::isnan(value.vcd.mean));
  EXPECT_EQ(value.dropped_draws, 10000);
}

// The pieces in which the work is watched do not change the result.
TEST(EstimateDivergence, TellsTheShareThatIsDone) {
  const DensityTarget target(2, [](std::span<const double> z, std::span<double> gradient) {
    for (int i = 0; i < 2; ++i) gradient[i] = -z[i];
    return -0.5 * (square(z[0]) + square(z[1]));
  });
  MixtureFamily q(2, 3, Covariance::full);
  for (int k = 0; k < 3; ++k) q.mean(k)[0] = k;
  std::vector<double> shares;
  const Divergence watched = estimate_divergence(
      target, q, {.draws = 850, .watch = [&](double share) { shares.push_back(share); }}, PhiloxSource(1));
  ASSERT_EQ(shares.size(), 6u);  // 2550 draws in three pieces, before and after refinement
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  EXPECT_EQ(shares[2], 0.5);
  EXPECT_EQ(shares.back(), 1);
  const Divergence plain = estimate_divergence(target, q, {.draws = 850}, PhiloxSource(1));
  EXPECT_EQ(watched.elbo.mean, plain.elbo.mean);
  EXPECT_EQ(watched.vcd.mean, plain.vcd.mean);
}

TEST(TunedStepSize, ReachesTheAcceptanceItAimsAt) {
  GaussianFamily q(1, Covariance::diagonal);
  const DensityTarget target(1, [](std::span<const double> z, std::span<double> gradient) {
    gradient[0] = -z[0] - std::pow(z[0], 3);
    return -0.5 * z[0] * z[0] - 0.25 * std::pow(z[0], 4);
  });
  const PhiloxSource random(1);
  const double step_size = tuned_step_size(
      target, q, Hmc(), {.steps = 3, .adapt = Adapt::between, .step_size = 0.3, .acceptance = 0.8}, random);
  const Divergence value = estimate_divergence(target, q, {.steps = 3, .step_size = step_size, .draws = 10000}, random);
  EXPECT_NEAR(value.acceptance, 0.8, 0.05);
}

}  // namespace
}  // namespace hone
