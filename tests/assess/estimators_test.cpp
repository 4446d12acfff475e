// Errors and effective draws of chains, against chains whose answers are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "hone/assess/refined_draws.hpp"
#include "hone/base/random.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

constexpr int seeds = 500, chains = 128, states = 24;

// Stationary chains x_s = ρ x_{s−1} + √(1 − ρ²) ε, chain after chain: mean 0, sd 1.
std::vector<double> autoregression(double rho, std::uint64_t seed) {
  std::vector<double> x(static_cast<std::size_t>(chains) * states);
  PhiloxSource(seed).normals({Purpose::draw}, x);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i % states > 0) x[i] = rho * x[i - 1] + std::sqrt(1 - rho * rho) * x[i];
  return x;
}

// n / (1 + 2 Σ (1 − k/m) r(k)) of n = chains · m states whose correlation at lag k is r(k): exact for the mean of
// finite chains.
template <class Correlation>
double exact_draws(Correlation&& r) {
  double sum = 1;
  for (int k = 1; k < states; ++k) sum += 2 * (1 - static_cast<double>(k) / states) * r(k);
  return chains * states / sum;
}

class Chains : public testing::TestWithParam<double> {};

// Of 500 runs, as many means and sds lie within 1.96 printed errors of the truth as the normal law says, up to three
// points (three standard errors of that share).
TEST_P(Chains, ErrorsOfMeansAndSdsCoverTheTruth) {
  int means = 0, sds = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::vector<double> x = autoregression(GetParam(), seed);
    const Estimate mean = mean_over_chains(x, chains), sd = sd_over_chains(x, chains);
    means += std::abs(mean.mean) < 1.96 * mean.se;
    sds += std::abs(sd.mean - 1) < 1.96 * sd.se;
  }
  EXPECT_NEAR(means, 0.95 * seeds, 0.03 * seeds);
  EXPECT_NEAR(sds, 0.95 * seeds, 0.03 * seeds);
}

// The correlation of squares is ρ²ᵏ, that of indicators of x < 0 is 2/π arcsin ρᵏ.
TEST_P(Chains, EffectiveDrawsOfAutoregressions) {
  const double rho = GetParam();
  Moments mean, square_mean, below;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::vector<double> x = autoregression(rho, seed);
    std::vector<double> squares = x;
    for (double& v : squares) v = v * v;
    mean.add(1 / effective_draws(x, chains));  // its expectation is known, not that of its inverse
    square_mean.add(1 / effective_draws(squares, chains));
    below.add(1 / effective_draws_below(x, chains, 0));
  }
  const auto expect = [](const Moments& inverse, double draws) {
    const Estimate e = inverse.estimate();
    EXPECT_NEAR(e.mean * draws, 1, 4 * e.se * draws + 0.01);  // a ratio's bias is of the order of 1 / draws
  };
  expect(mean, exact_draws([=](int k) { return std::pow(rho, k); }));
  expect(square_mean, exact_draws([=](int k) { return std::pow(rho, 2 * k); }));
  expect(below, exact_draws([=](int k) { return 2 / std::numbers::pi * std::asin(std::pow(rho, k)); }));
}

INSTANTIATE_TEST_SUITE_P(Autoregressions, Chains, testing::Values(0.0, 0.5, 0.9, -0.4),
                         [](const auto& rho) { return "rho" + std::to_string(rho.index); });

TEST(Chains, TheErrorOfAnSdFollowsItsFourthMoment) {
  Moments error;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) error.add(sd_over_chains(autoregression(0, seed), chains).se);
  EXPECT_NEAR(error.mean() * std::sqrt(2.0 * chains * states), 1, 0.02);  // σ / √(2 n) of a normal
}

// Interpolated between the two order statistics, whatever the length, the order and the ties.
TEST(Quantile, IsThatOfTheSortedValues) {
  for (const std::size_t n : {1u, 2u, 100u, 512u, 4097u})
    for (const int kind : {0, 1, 2}) {  // in no order, many ties, descending
      std::vector<double> x(n);
      PhiloxSource(3).normals({Purpose::draw, 0, static_cast<std::uint32_t>(n)}, x);
      if (kind == 1)
        for (double& value : x) value = std::round(value);
      std::vector<double> sorted = x;
      std::ranges::sort(sorted);
      if (kind == 2) x.assign(sorted.rbegin(), sorted.rend());
      for (const double p : {0.0, 0.001, 0.05, 0.3, 0.5, 0.95, 0.999, 1.0}) {
        const double at = p * static_cast<double>(n - 1);
        const auto low = static_cast<std::size_t>(at);
        const double next = sorted[std::min(low + 1, n - 1)];
        std::vector<double> own = x;
        EXPECT_EQ(quantile_of(own, p), sorted[low] + (at - std::floor(at)) * (next - sorted[low])) << n << " " << p;
      }
    }
}

}  // namespace
}  // namespace hone
