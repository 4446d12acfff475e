// Every likelihood against formulas written another way, sums over all x, moments of draws, and bad data.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "hone/base/random.hpp"
#include "hone/base/statistics.hpp"
#include "hone/latent/likelihoods.hpp"
#include "hone/latent/model.hpp"
#include "tests/support/differences.hpp"

namespace hone {
namespace {

TEST(Likelihood, TheTableHasEachDensityOnceAndInOrder) {
  int count = 0;
  Likelihoods::visit([&](auto each) {
    EXPECT_EQ(static_cast<int>(each.density), count++);
    EXPECT_EQ(facts_of(each.density).name, each.facts.name);
  });
  EXPECT_EQ(count, Likelihoods::size);
}

TEST(Likelihood, RisingFactorials) {
  for (const double r : {1e-4, 0.01, 0.3, 1.0, 2.5, 15.9, 16.0, 40.0, 1e3, 2e6})
    for (const double n : {0.0, 1.0, 2.0, 16.0, 17.0, 100.0, 1e5}) {
      const auto value = [n](double at) { return std::lgamma(at + n) - std::lgamma(at); };
      EXPECT_NEAR(log_rising(r, n), value(r), 1e-13 * (1 + std::lgamma(r + n))) << r << " " << n;
      double slope = 0;
      for (double k = 0; k < n; ++k) slope += 1 / (r + k);
      EXPECT_NEAR(log_rising_derivative(r, n), slope, 1e-12 * (1 + slope)) << r << " " << n;
    }
}

TEST(Likelihood, LearnedGaussianByTheNormalDensity) {
  const LikelihoodShape shape{2};
  const double a[] = {0.3, -1, -0.2, 2}, x[] = {0.5, 4};
  for (int p = 0; p < 2; ++p) {
    const double sd = 0.01 + std::log(1 + std::exp(a[2 + p]));
    const double density = std::exp(-(x[p] - a[p]) * (x[p] - a[p]) / (2 * sd * sd)) / std::sqrt(2 * M_PI * sd * sd);
    EXPECT_NEAR(GaussianLearned::log_p(shape, p, a, x), std::log(density), 1e-13);
  }
}

TEST(Likelihood, CategoricalByItsProbabilities) {
  const LikelihoodShape shape{6, 3};
  const double a[] = {0.5, -1, 2, 700, 701, -700};
  const double first = std::exp(0.5) + std::exp(-1) + std::exp(2);
  for (int chosen = 0; chosen < 3; ++chosen) {
    double x[6] = {};
    x[chosen] = x[3 + chosen] = 1;
    EXPECT_NEAR(Categorical::log_p(shape, 0, a, x), std::log(std::exp(a[chosen]) / first), 1e-14);
    EXPECT_NEAR(Categorical::log_p(shape, 1, a, x), a[3 + chosen] - 701 - std::log1p(std::exp(-1)), 1e-12);
  }
}

// Probabilities of all counts add up to 1, and their mean and variance are those that the file promises.
TEST(Likelihood, NegativeBinomialSumsToOne) {
  for (const auto& [a, b] : {std::pair{1.0, 0.5}, {3.0, -2.0}, {-1.0, 4.0}, {5.0, 30.0}}) {
    const double outputs[] = {a, b};
    const double m = std::log(std::exp(1e-4) + std::exp(a)), r = std::log(std::exp(1e-4) + std::exp(b));
    double sum = 0, mean = 0, square = 0;
    for (double n = 0; n < 3000; ++n) {
      const double p = std::exp(NegativeBinomial::log_p({1}, 0, outputs, &n) - std::lgamma(n + 1));
      sum += p;
      mean += n * p;
      square += n * n * p;
    }
    EXPECT_NEAR(sum, 1, 1e-11);
    EXPECT_NEAR(mean, m, 1e-8 * m);
    EXPECT_NEAR(square - mean * mean, m + m * m / r, 1e-7 * (m + m * m / r));
  }
}

TEST(Likelihood, ResidualsAgainstDifferences) {
  Likelihoods::visit([](auto each) {
    SCOPED_TRACE(each.facts.name);
    const LikelihoodShape shape{6, each.facts.grouped ? 3 : 0};
    std::vector<double> a(outputs_of(each.density, shape)), x = {1, 0, 0, 0, 0, 1}, residual(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = 0.7 + 2 * std::sin(3.0 * static_cast<double>(i));
    if (each.facts.counts) x = {0, 1, 7, 300, 2, 1};
    if (each.facts.centred) x = {0.4, -2, 1, 0, 3, 0.01};
    const auto total = [&] {
      double sum = 0;
      for (int i = 0; i < items_of(each.density, shape); ++i) sum += each.log_p(shape, i, a.data(), x.data());
      return sum;
    };
    for (int i = 0; i < items_of(each.density, shape); ++i)
      each.residual(shape, i, a.data(), x.data(), [&](int at, double r) { residual[at] = r; });
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double slope = test::derivative_in(a[i], total, 1e-3);
      EXPECT_NEAR(residual[i], slope, 1e-7 * (1 + std::abs(slope))) << i;
    }
  });
}

// Means and variances of draws, within four standard errors.
TEST(Likelihood, DrawsHaveTheMeanOfTheModel) {
  constexpr int draws = 20000;
  Likelihoods::visit([](auto each) {
    SCOPED_TRACE(each.facts.name);
    const LikelihoodShape shape{6, each.facts.grouped ? 3 : 0};
    std::vector<double> a(outputs_of(each.density, shape)), mean(6), noise(6 * draws), x(6);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = 1.5 * std::cos(2.0 * static_cast<double>(i));
    likelihood_mean(each.density, shape, a, mean);
    const PhiloxSource random(4);
    if (each.facts.noise == Noise::normal)
      random.normals({Purpose::synthesize}, noise);
    else
      random.uniforms({Purpose::synthesize}, noise);
    std::vector<Moments> moments(6), squares(6);
    for (int n = 0; n < draws; ++n) {
      likelihood_draw(each.density, shape, a, std::span(noise).subspan(6 * n, 6), x);
      for (int p = 0; p < 6; ++p) {
        EXPECT_TRUE(each.allowed(x[p]));
        moments[p].add(x[p]);
        squares[p].add((x[p] - mean[p]) * (x[p] - mean[p]));
      }
    }
    for (int p = 0; p < 6; ++p) {
      EXPECT_NEAR(moments[p].mean(), mean[p], 4 * moments[p].estimate().se);
      if (each.density == Density::gaussian_learned) {
        EXPECT_NEAR(squares[p].mean(), square(GaussianLearned::sd(a[6 + p])), 4 * squares[p].estimate().se);
      }
      if (each.density == Density::negative_binomial) {
        const double r = modified_softplus(a[6 + p]);
        EXPECT_NEAR(squares[p].mean(), mean[p] + square(mean[p]) / r, 4 * squares[p].estimate().se);
      }
    }
    if (each.facts.grouped) {
      EXPECT_NEAR(std::accumulate(mean.begin(), mean.end(), 0.0), 2, 1e-12);
    }
  });
}

std::string fault_of(Density density, int categories, std::vector<double> values) {
  const DataSet data(std::move(values), ImageShape{1, 4});
  try {
    check_data(density, {4, categories}, Missing::refused, data);
    check_scale(density, data);
  } catch (const DataError& error) {
    return error.what();
  }
  return {};
}

// Binarization is advised only where it works.
TEST(Likelihood, NumbersThatAreNoBitsComeWithAWayOut) {
  EXPECT_EQ(fault_of(Density::bernoulli, 0, {1, 0, 0, 1, 0, 0.5, 0, 0}),
            "a Bernoulli likelihood needs binary data; set binarization to threshold or stochastic: datum 1 has the "
            "value 0.5 at position 1 (both count from 0)");
  EXPECT_NE(fault_of(Density::bernoulli, 0, {1, 0, 0, 7}).find("set binarization to threshold"), std::string::npos);
  for (const double value : {1e20, -1.0, 7.5})
    EXPECT_NE(fault_of(Density::bernoulli, 0, {1, 0, 0, value})
                  .find("divide the data so that all are from 0 to 1 and set binarization, or choose a likelihood for"),
              std::string::npos)
        << value;
}

TEST(Likelihood, BadDataAreNamed) {
  EXPECT_EQ(
      fault_of(Density::categorical, 2, {1, 0, 0, 1, 0, 1, 1, 1}),
      "a Categorical likelihood needs groups of neighbouring values of which one is 1 and the others 0: datum 1 has "
      "2 ones at the positions 2 to 3");
  EXPECT_EQ(
      fault_of(Density::categorical, 2, {1, 0, 0, 1, 0, 1, 0.5, 0.5}),
      "a Categorical likelihood needs groups of neighbouring values of which one is 1 and the others 0: datum 1 has "
      "the value 0.5 at position 2 (both count from 0)");
  EXPECT_EQ(fault_of(Density::negative_binomial, 0, {1, 0, 0, 1, 0, -1, 3, 2}),
            "a Negative-binomial likelihood needs counts: datum 1 has the value -1 at position 1 (both count from 0)");
  EXPECT_EQ(fault_of(Density::gaussian_learned, 0, {1, 0, 0, 1, 0, 1, 3, INFINITY}),
            "a Gaussian-learned likelihood needs finite numbers: datum 1 has the value inf at position 3 (both count "
            "from 0)");
  EXPECT_EQ(fault_of(Density::poisson, 0, {1, 0, 1e38, 1}),
            "a Poisson likelihood needs counts up to 16777216: datum 0 has the value 1e+38 at position 2 (both count "
            "from 0); count in larger units, or divide the data and choose a likelihood for numbers "
            "(gaussian-learned)");
  EXPECT_EQ(fault_of(Density::gaussian, 0, {1, 0, 1e6, 1}), "");
  EXPECT_EQ(fault_of(Density::negative_binomial, 0, {1, 0, 0, 1, 0, 7, 3, 2}), "");
}

std::string key_of(const ModelConfig& config) {
  try {
    check(config);
  } catch (const KeyError& error) {
    return error.key();
  }
  return {};
}

TEST(Likelihood, ImpossibleConfigurationsNameTheKey) {
  ModelConfig config{.kind = ModelKind::mf, .hidden = {}, .likelihood = Density::categorical};
  EXPECT_EQ(key_of(config), "categories");
  config.categories = 3;
  EXPECT_EQ(key_of(config), "");
  config.likelihood = Density::poisson;
  EXPECT_EQ(key_of(config), "categories");
  EXPECT_EQ(key_of({.kind = ModelKind::logistic_mf, .hidden = {}, .likelihood = Density::poisson}), "likelihood");
  EXPECT_EQ(key_of({.kind = ModelKind::mf}), "hidden");
  EXPECT_EQ(key_of({.kind = ModelKind::mf, .hidden = {}, .channels = {4}}), "channels");
  EXPECT_EQ(key_of({.likelihood = Density::gaussian_learned, .channels = {4}}), "channels");
  EXPECT_EQ(key_of({.channels = {4, 0}}), "channels");
  EXPECT_EQ(key_of({.initial = InitialWeights::paper, .channels = {4}}), "init");
  EXPECT_EQ(key_of({.channels = {4}}), "");
  EXPECT_EQ(key_of({.kind = ModelKind::vae, .likelihood = Density::negative_binomial}), "");
}

}  // namespace
}  // namespace hone
