#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "hone/assess/exchange.hpp"
#include "hone/assess/importance.hpp"
#include "hone/assess/nested_rhat.hpp"
#include "hone/assess/pareto.hpp"
#include "hone/base/random.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

TEST(FitPareto, FindsTheShapeOfKnownTails) {
  constexpr int n = 4000;
  for (const double k : {-0.3, 0.2, 0.5, 0.9, 1.5}) {
    std::vector<double> x(n);
    PhiloxSource(7).uniforms({Purpose::draw}, x);
    for (double& u : x) u = 2.5 * std::expm1(-k * std::log(u)) / k;  // the quantile function, σ = 2.5
    std::ranges::sort(x);
    const Pareto fit = fit_pareto(x);
    EXPECT_NEAR(fit.k, k, 4 * (1 + std::abs(k)) / std::sqrt(n) + 0.003) << k;  // 0.003: the prior's pull
    EXPECT_NEAR(fit.sigma, 2.5, 0.3) << k;
  }
}

// For q = N(0, s² I) and p = N(0, I) in two dimensions the weights are exactly Pareto with k = 1 − s².
// The larger k of both tails by the fit itself, over sorted values; below a limit only that it is below.
TEST(TailIndex, IsTheFitOfTheHeavierTail) {
  constexpr int n = 3000, tail = 164;  // 3 √n
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::vector<double> x(n), ascending;
    PhiloxSource(seed).normals({Purpose::draw}, x);
    const double power = 0.7 + 0.1 * static_cast<double>(seed);  // from lighter than normal to heavy
    for (double& v : x) v = std::copysign(std::pow(std::abs(v), v > 0 ? power : 1), v);
    double expected = 0;
    for (const double side : {1.0, -1.0}) {
      std::vector<double> sorted, excess;
      for (const double v : x) sorted.push_back(side * v);
      std::ranges::sort(sorted);
      for (int i = n - tail; i < n; ++i) excess.push_back(sorted[i] - sorted[n - tail - 1]);
      expected = std::max(expected, fit_pareto(excess).k);
    }
    EXPECT_EQ(tail_index(x), expected);
    for (const double least : {0.1, 0.3, 0.45, expected - 1e-9, expected, expected + 1e-9, 1.0})
      if (expected >= least)
        EXPECT_EQ(tail_index(x, least), expected) << seed;
      else
        EXPECT_LT(tail_index(x, least), least) << seed;
  }
}

TEST(SmoothWeights, KHatOfAGaussianTooNarrow) {
  constexpr int n = 20000;
  for (const double variance : {0.3, 0.5, 0.8}) {
    std::vector<double> normals(2 * n), log_ratio(n);
    PhiloxSource(3).normals({Purpose::draw}, normals);
    for (int i = 0; i < n; ++i)
      log_ratio[i] = 0.5 * (1 - variance) * (square(normals[2 * i]) + square(normals[2 * i + 1]));
    const Psis psis = smooth_weights(log_ratio);
    EXPECT_NEAR(psis.k_hat, 1 - variance, 4 * (2 - variance) / std::sqrt(3 * std::sqrt(n))) << variance;
    EXPECT_NEAR(log_sum_exp(psis.log_weight), 0, 1e-12);
  }
}

TEST(SmoothWeights, SmoothedWeightsGiveTheRightMean) {
  constexpr int n = 40000;
  std::vector<double> x(n), log_ratio(n);
  PhiloxSource(4).normals({Purpose::draw}, x);  // q = N(0, 1), p = N(0.5, 0.9²)
  for (int i = 0; i < n; ++i) log_ratio[i] = -0.5 * square((x[i] - 0.5) / 0.9) + 0.5 * square(x[i]);
  const Psis psis = smooth_weights(log_ratio);
  double mean = 0;
  for (int i = 0; i < n; ++i) mean += std::exp(psis.log_weight[i]) * x[i];
  EXPECT_LT(psis.k_hat, 0.5);
  EXPECT_NEAR(mean, 0.5, 4 * 0.9 / std::sqrt(psis.effective_draws));
}

TEST(SmoothWeights, EqualAndMissingWeights) {
  const Psis equal = smooth_weights(std::vector<double>(100, 3.0));
  EXPECT_EQ(equal.k_hat, -infinity);
  EXPECT_NEAR(equal.effective_draws, 100, 1e-9);
  const Psis none = smooth_weights(std::vector<double>(100, -infinity));
  EXPECT_EQ(none.k_hat, infinity);
  std::vector<double> few(100, -infinity);
  few[3] = few[5] = 1;
  EXPECT_EQ(smooth_weights(few).k_hat, infinity);
  EXPECT_NEAR(std::exp(smooth_weights(few).log_weight[3]), 0.5, 1e-12);
}

// Rounding of a q that is p may have any tail: it says nothing.
TEST(SmoothWeights, NearlyEqualWeightsHaveNoTail) {
  std::vector<double> noise(3 * 2000), log_ratio;
  PhiloxSource(7).normals({Purpose::draw}, noise);
  for (std::size_t i = 0; i < noise.size(); i += 3)  // Student's t with two degrees of freedom
    log_ratio.push_back(1e-5 * noise[i] / std::sqrt((square(noise[i + 1]) + square(noise[i + 2])) / 2));
  const Psis psis = smooth_weights(log_ratio);
  EXPECT_LT(psis.k_hat, 0);
  EXPECT_NEAR(psis.effective_draws, 2000, 1e-3);
}

// By hand: two super-chains of two chains of two values.
TEST(NestedRhat, AgreesWithAnExampleByHand) {
  std::vector<Moments> chain(4);
  const double values[4][2] = {{0, 2}, {2, 4}, {5, 7}, {3, 5}};
  for (int c = 0; c < 4; ++c)
    for (const double x : values[c]) chain[c].add(x);
  // chain means 1, 3 | 6, 4; between 2, 2; along 2 each; super means 2, 5: B = 4.5, W = 2 + 2
  EXPECT_NEAR(nested_rhat(chain, 2), std::sqrt(1 + 4.5 / 4), 1e-14);
}

TEST(NestedRhat, ChainsThatStandStill) {
  std::vector<Moments> chain(4);
  for (int c = 0; c < 4; ++c)
    for (int i = 0; i < 3; ++i) chain[c].add(c / 2);
  EXPECT_EQ(nested_rhat(chain, 2), infinity);
}

// Chains that are alike: the ratio follows F, and exceeds the limit for one quantity as often as a normal deviate
// exceeds √(2 log 50), in 0.26 % of the cases, up to chance.
TEST(NestedRhat, SuperChainsThatAreAlikeSeldomDiffer) {
  constexpr int runs = 40'000;
  for (const auto& [supers, per_super] : {std::pair(2, 2), {3, 2}, {4, 2}, {4, 4}, {8, 2}, {8, 4}, {8, 16}}) {
    const double limit = most_spread(supers, per_super, 1);
    int beyond = 0;
    std::vector<double> value(static_cast<std::size_t>(supers * per_super));
    for (int run = 0; run < runs; ++run) {
      PhiloxSource(static_cast<std::uint64_t>(run)).normals({Purpose::draw}, value);
      std::vector<Moments> chain(value.size());
      for (std::size_t c = 0; c < value.size(); ++c) chain[c].add(value[c]);
      const NestedVariances variances = nested_variances(chain, per_super);
      beyond += variances.between > limit * variances.chance;
    }
    const double expected = 0.5 * std::erfc(std::sqrt(std::log(50.0))) * runs;
    EXPECT_NEAR(beyond, expected, 4 * std::sqrt(expected)) << supers << " " << per_super;
  }
}

// Super-chains of two chains, where F's tail has a closed form; and many of them, where the limit nears that of a
// normal deviate.
TEST(NestedRhat, TheLimitIsThatOfF) {
  for (const int quantities : {1, 22, 20'002}) {
    const double beyond = 0.5 * std::erfc(std::sqrt(std::log(50.0 * quantities)));
    const double two = most_spread(2, 2, quantities), three = most_spread(3, 2, quantities),
                 four = most_spread(4, 2, quantities), y = 4 / (4 + 3 * four);
    EXPECT_NEAR((2 / (2 + two)) / (1 + std::sqrt(two / (2 + two))) / beyond, 1, 1e-9);  // Student's t, freedom 2
    EXPECT_NEAR(std::pow(1 + 2 * three / 3, -1.5) / beyond, 1, 1e-9);
    EXPECT_NEAR((1 - std::pow(1 - y, 1.5) * (1 + 1.5 * y)) / beyond, 1, 1e-7);
    const double z = std::sqrt(2 * std::log(50.0 * quantities));
    EXPECT_NEAR(most_spread(20'001, 16, quantities), 1 + z * std::sqrt(2 / 2e4 + 2 / 3e5), 0.003);
  }
}

// Differences that are symmetric about zero have uniform p-values: mean ½, and no tenth of them too full.
TEST(Exchangeability, PValuesAreUniformForSymmetricDifferences) {
  constexpr int runs = 1000, pairs = 60, flips = 99;
  Team team(1);
  int tenth[10] = {};
  for (int run = 0; run < runs; ++run) {
    const PhiloxSource random(static_cast<std::uint64_t>(run));
    Matrix<double> d(5, pairs);
    random.normals({Purpose::draw}, d.view().flat());
    for (int i = 0; i < pairs; ++i) d(3, i) = d(0, i) * d(0, i) * d(0, i);  // heavy tails, and dependent on another row
    const double p = exchangeability_p_value(d, flips, random, team);
    ++tenth[std::min(9, static_cast<int>((p - 0.005) * 10))];
  }
  double chi_square = 0;
  for (const int count : tenth) chi_square += square(count - runs / 10.0) / (runs / 10.0);
  EXPECT_LT(chi_square, 27.9);  // 9 degrees of freedom: exceeded once in a thousand
}

TEST(Exchangeability, AShiftIsSeen) {
  Team team(2);
  Matrix<double> d(3, 400);
  const PhiloxSource random(1);
  random.normals({Purpose::draw}, d.view().flat());
  for (int i = 0; i < 400; ++i) d(1, i) += 0.4;
  EXPECT_EQ(exchangeability_p_value(d, 999, random, team), 0.001);
}

}  // namespace
}  // namespace hone
