// Whole fits against closed forms: errors that are printed, q's sds, the scale that reasons speak of.
#include "hone/fit/checked_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "hone/base/scalar.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/fit/moment_match.hpp"
#include "hone/target/density.hpp"
#include "hone/tensor/vectors.hpp"
#include "tests/support/scaled_gaussian.hpp"

namespace hone {
namespace {

using test::scaled_gaussian;

// A stationary autoregression: mean 0, sd 1, neighbours correlated by ρ.
auto autoregression(double rho) {
  return [rho](std::span<const double> z, std::span<double> g) {
    const double precision = 1 / (1 - rho * rho);
    double sum = -0.5 * z[0] * z[0];
    g[0] = -z[0];
    for (std::size_t i = 1; i < z.size(); ++i) {
      const double innovation = z[i] - rho * z[i - 1];
      sum -= 0.5 * precision * innovation * innovation;
      g[i] = -precision * innovation;
      g[i - 1] += precision * rho * innovation;
    }
    return sum;
  };
}

std::vector<std::string> numbered(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("x." + std::to_string(i + 1));
  return names;
}

// 1.96 printed errors hold the truth in 95 of 100 fits, up to three standard errors of that share.
TEST(CheckedFit, PrintedErrorsCoverTheTruth) {
  constexpr int fits = 500;
  const auto posterior = make_posterior(autoregression(0.95), numbered(2));
  CheckedFitConfig config;
  int means = 0, sds = 0;
  for (int seed = 1; seed <= fits; ++seed) {
    config.fit.seed = static_cast<std::uint64_t>(seed);
    const ParameterSummary s = fit_and_check(*posterior, config).parameters[seed % 2];
    means += std::abs(s.mean) < 1.96 * s.mcse;
    sds += std::abs(s.sd - 1) < 1.96 * s.sd_mcse;
  }
  const double tolerance = 3 * std::sqrt(0.05 * 0.95 * fits);
  EXPECT_NEAR(means, 0.95 * fits, tolerance);
  EXPECT_NEAR(sds, 0.95 * fits, tolerance);
}

// The same where draws are skewed: x.1 of a gamma law of shape 2, fitted over its logarithm, and x.2 normal about that
// logarithm. Up to three points, which are three standard errors of the share.
TEST(CheckedFit, PrintedErrorsCoverASkewedTruth) {
  constexpr int fits = 500;
  constexpr double noise = 0.5;  // of x.2, a variance
  const auto density = [](std::span<const double> z, std::span<double> g) {
    const double gamma = std::exp(z[0]), off = (z[1] - z[0]) / noise;
    g[0] = 2 - gamma + off;
    g[1] = -off;
    return 2 * z[0] - gamma - 0.5 * noise * off * off;
  };
  const auto constrain = [](std::span<const double> z, std::span<double> x) {
    x[0] = std::exp(z[0]);
    x[1] = z[1];
  };
  const auto posterior = make_posterior(density, {"log x.1", "x.2"}, {"x.1", "x.2"}, constrain, 2);
  const double mean[] = {2, 1 - std::numbers::egamma};  // ψ(2), and its derivative for the variance
  const double sd[] = {std::sqrt(2.0), std::sqrt(square(std::numbers::pi) / 6 - 1 + noise)};
  CheckedFitConfig config;
  int means = 0, sds = 0;
  for (int seed = 1; seed <= fits; ++seed) {
    config.fit.seed = static_cast<std::uint64_t>(seed);
    const int k = seed % 2;
    const ParameterSummary s = fit_and_check(*posterior, config).parameters[static_cast<std::size_t>(k)];
    means += std::abs(s.mean - mean[k]) < 1.96 * s.mcse;
    sds += std::abs(s.sd - sd[k]) < 1.96 * s.sd_mcse;
  }
  EXPECT_NEAR(means, 0.95 * fits, 0.03 * fits);
  EXPECT_NEAR(sds, 0.95 * fits, 0.03 * fits);
}

// q itself is exact up to the noise of the states that it followed; the table's q adds that of 4,000 draws.
TEST(CheckedFit, OnAGaussianQIsNotWide) {
  constexpr int d = 10;
  const auto posterior = make_posterior(autoregression(0.8), numbered(d));
  CheckedFitConfig config;
  Moments bias;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    config.fit.seed = seed;
    const CheckedFit fit = fit_and_check(*posterior, config);
    EXPECT_EQ(fit.judgement.verdict, Verdict::use_q);
    for (int i = 0; i < d; ++i) {
      EXPECT_NEAR(std::sqrt(fit.fit.q.whitening.variance(i)), 1, 0.01) << i;
      EXPECT_NEAR(fit.parameters[static_cast<std::size_t>(i)].q_sd, 1, 4 / std::sqrt(2 * 4000.0)) << i;
      bias.add(fit.parameters[static_cast<std::size_t>(i)].q_sd - 1);
    }
  }
  EXPECT_NEAR(bias.mean(), 0, 0.01);
}

// Where q leaves correlations to the chains, trajectories are long enough for them: the slowest direction is 4.4 sds of
// a coordinate long and costs hundreds of short ones.
TEST(CheckedFit, ChainsReachWhatIndependentCoordinatesLeave) {
  constexpr int d = 400;
  const auto posterior = make_posterior(autoregression(0.9), numbered(d));
  CheckedFitConfig config;
  config.fit.family = QKind::gaussian;
  const CheckedFit fit = fit_and_check(*posterior, config);
  EXPECT_EQ(fit.judgement.verdict, Verdict::use_refined) << fit.judgement.reasons.front();
  for (const ParameterSummary& s : fit.parameters) {
    EXPECT_NEAR(s.mean, 0, 4.5 * 0.025) << s.name;  // the error that was wanted, and 400 of them
    EXPECT_NEAR(s.sd, 1, 0.1) << s.name;
  }
}

// An event that hardly a draw shows is no reason to refuse the draws.
TEST(CheckedFit, ARareGeneratedQuantityIsNoReason) {
  const auto constrain = [](std::span<const double> z, std::span<double> x) {
    x[0] = z[0];
    x[1] = z[1];
    x[2] = z[0] > 3 ? 1 : 0;
  };
  const auto posterior = make_posterior(autoregression(0.5), numbered(2), {"x.1", "x.2", "beyond"}, constrain, 2);
  const CheckedFit fit = fit_and_check(*posterior, {});
  EXPECT_EQ(fit.judgement.verdict, Verdict::use_q) << fit.judgement.reasons.front();
  EXPECT_GT(fit.parameters[2].sd, 0);
  EXPECT_GT(fit.parameters[2].sd_mcse / fit.parameters[2].sd, most_sd_error);
  EXPECT_LT(fit.findings.chains.sd_error_value, 2);
}

// Independent coordinates take √(Σ_ii / P_ii), with the covariance Σ and the precision P: the least symmetrised KL.
TEST(MomentMatch, IndependentCoordinatesTakeTheLeastDivergence) {
  constexpr int d = 6, chains = 64, each = 500;
  constexpr double rho = 0.7;
  ChainStates states(d, chains, each);
  states.gradient = Matrix<double>(d, states.count());
  PhiloxSource(3).normals({Purpose::draw}, states.z.view().flat());
  const auto density = autoregression(rho);
  for (int i = 0; i < states.count(); ++i) {
    for (int k = 1; k < d; ++k) states.z(k, i) = rho * states.z(k - 1, i) + std::sqrt(1 - rho * rho) * states.z(k, i);
    density(states.z.column(i), states.gradient.column(i));
  }
  FittedQ q{QKind::gaussian, Whitening::diagonal(std::vector<double>(d), std::vector<double>(d, 1.0)),
            std::make_unique<GaussianFamily>(d, Covariance::diagonal)};
  const Whitening matched_q = matched(q, states, states.count());
  for (int k = 0; k < d; ++k) {
    const double precision = (k == 0 || k == d - 1 ? 1 : 1 + rho * rho) / (1 - rho * rho);
    EXPECT_NEAR(matched_q.variance(k) * std::sqrt(precision), 1, 4 / std::sqrt(states.count())) << k;
    EXPECT_NEAR(matched_q.mean()[k], 0, 4 / std::sqrt(states.count())) << k;
  }
}

std::unique_ptr<Posterior> several_scales() {
  const auto density = [](std::span<const double> z, std::span<double> g) {
    double sum = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      g[i] = -z[i];
      sum -= 0.5 * z[i] * z[i];
    }
    return sum;
  };
  const auto constrain = [](std::span<const double> z, std::span<double> x) {
    x[0] = z[0];
    x[1] = std::exp(z[1]);
    x[2] = 1 / (1 + std::exp(-z[2]));
    x[3] = std::sinh(z[3]);
    x[4] = std::tanh(z[4]);
  };
  return make_posterior(density, {"mu", "tau", "p", "s", "L.1", "other"}, {"mu", "tau", "p", "s", "L.1.1"}, constrain,
                        5);
}

TEST(Posterior, CoordinatesInWords) {
  Matrix<double> z(6, 3);
  PhiloxSource(1).normals({Purpose::draw}, z.view().flat());
  EXPECT_EQ(coordinate_words(*several_scales(), z),
            (std::vector<std::string>{"mu", "log tau", "logit p", "unconstrained s", "unconstrained L.1", "other"}));
}

// The natural scale comes first and is what the table has; a coordinate is named again only where it is another scale.
TEST(Judge, ReasonsNameTheirScale) {
  Findings f;
  f.dimension = 2;
  f.coordinate_names = {"mu", "log tau"};
  f.chains = {.nested_rhat = 1, .drift_limit = 4, .acceptance = 0.8, .proposals = 100, .bfmi = 1};
  f.natural.shift = 0.3;
  f.natural.shift_name = "mu";
  f.natural.sd_ratio = 1.21;
  f.natural.sd_name = "tau";
  f.q.shift = {0.31, 0};
  f.q.sd_ratio = {1, 0.82};
  const Judgement of_q = judge(f, {});
  EXPECT_EQ(of_q.reasons,
            (std::vector<std::string>{"q's mean of mu is off by 0.30 sd (tolerance 0.1)",
                                      "q's sd of tau is 1.21 times what it should be (tolerance 7 %)",
                                      "q's sd of log tau is 0.82 times what it should be (tolerance 7 %)"}));
  EXPECT_EQ(judge(f, {}, Subject::draws).reasons[0],
            "the draws' mean of mu is off by 0.30 sd (tolerance with chance 0.1)");
}

// A number that rounds to its limit gets the digits that tell the two apart.
TEST(Judge, ReasonsShowThatANumberIsBeyondItsLimit) {
  Findings f;
  f.dimension = 2;
  f.coordinate_names = {"a", "b"};
  f.chains = {.nested_rhat = 1, .drift_limit = 4, .acceptance = 0.8, .proposals = 100, .bfmi = 1};
  f.q.shift = {0.1004, 0};
  f.q.sd_ratio = {1.0702, 1};
  f.q.narrowest = {{{1.0, 0.0}, 0.93}};
  f.q.widest = {{{1.0, 0.0}, 1.0700003}};
  f.vcd = {0.03, 0.001};
  EXPECT_EQ(
      judge(f, {}).reasons,
      (std::vector<std::string>{"q's mean of a is off by 0.1004 sd (tolerance 0.1)",
                                "q's sd of a is 1.0702 times what it should be (tolerance 7 %)",
                                "along its worst direction q's sd is 0.93 times what it should be (tolerance 7 %)",
                                "along its worst direction q's sd is 1.070000 times what it should be (tolerance 7 %)",
                                "the VCD is 0.03 ± 0.001, 0.015 per dimension (tolerance 0.01)"}));
}

// A target that wants large batches gets them, and the bits stay the same.
TEST(CheckedFit, LargeBatchesChangeNoBit) {
  struct Large final : Posterior {
    explicit Large(const Posterior& own, int batch) : posterior(own), good(batch) {}
    int dimension() const override { return posterior.dimension(); }
    const std::vector<std::string>& names() const override { return posterior.names(); }
    const std::vector<std::string>& coordinate_names() const override { return posterior.coordinate_names(); }
    std::size_t parameter_count() const override { return posterior.parameter_count(); }
    void constrain(std::span<const double> z, std::span<double> x) const override { posterior.constrain(z, x); }
    int good_batch() const override { return good; }
    void compute(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> g) const override {
      largest = std::max(largest, z.cols());
      posterior.evaluate(z, want, value, g);
    }
    const Posterior& posterior;
    int good;
    mutable int largest = 0;
  };
  const auto posterior = make_posterior(scaled_gaussian(200, 0.5), [] {
    std::vector<std::string> names;
    for (int i = 0; i < 200; ++i) names.push_back("z." + std::to_string(i));
    return names;
  }());
  CheckedFitConfig config;
  config.fit.family = QKind::gaussian;
  config.fit.budget.gradients = 1;
  config.draws = 300;
  const Large small(*posterior, 1), large(*posterior, 10000);
  const CheckedFit one = fit_and_check(small, config), other = fit_and_check(large, config);
  EXPECT_EQ(one.log_p, other.log_p);
  EXPECT_EQ(one.gradients, other.gradients);
  EXPECT_GE(large.largest, 256);
}

// A budget of gradients holds where rounds get longer trajectories than those before them, as in a funnel: up to 4 %,
// which are the searches for step sizes, the draws of q, and trajectories of random length.
TEST(CheckedFit, KeepsItsBudgetOfGradients) {
  constexpr int d = 5;
  const auto funnel = [](std::span<const double> z, std::span<double> g) {
    double sum = -0.5 * square(z[0] / 3);
    g[0] = -z[0] / 9;
    for (std::size_t i = 1; i < z.size(); ++i) {
      g[i] = -z[i] * std::exp(-z[0]);
      g[0] -= 0.5 * (1 + z[i] * g[i]);
      sum += 0.5 * (z[i] * g[i] - z[0]);
    }
    return sum;
  };
  const auto posterior = make_posterior(funnel, numbered(d));
  CheckedFitConfig config;
  for (const std::int64_t budget : {125'000, 250'000, 500'000})
    for (const std::uint64_t seed : {1, 2, 3}) {
      config.fit.seed = seed;
      config.fit.budget.gradients = budget;
      config.coordinates = ChainCoordinates::affine;
      const CheckedFit fit = fit_and_check(*posterior, config);
      EXPECT_TRUE(fit.refined.capped) << budget << ' ' << seed;  // more would have been spent
      EXPECT_LT(fit.gradients, 1.04 * static_cast<double>(budget)) << seed;
      EXPECT_GT(fit.gradients, 0.3 * static_cast<double>(budget)) << seed;
      config.coordinates = ChainCoordinates::adapted;
      EXPECT_LT(fit_and_check(*posterior, config).gradients, 1.04 * static_cast<double>(budget)) << seed;
    }
}

// Two modes of masses 0.3 and 0.7, eight sds apart.
auto two_modes() {
  return make_posterior(
      [](std::span<const double> z, std::span<double> g) {
        const double a = std::log(0.3) - 0.5 * square(z[0] - 4), b = std::log(0.7) - 0.5 * square(z[0] + 4);
        const double top = std::max(a, b), sum = top + std::log(std::exp(a - top) + std::exp(b - top));
        const double share = std::exp(a - sum);
        g[0] = -share * (z[0] - 4) - (1 - share) * (z[0] + 4);
        g[1] = -z[1];
        return sum - 0.5 * z[1] * z[1];
      },
      {"x", "y"});
}

TEST(CheckedFit, ModesGetTheirMassFromImportanceWeights) {
  const auto posterior = two_modes();
  CheckedFitConfig config;
  config.fit.budget.gradients = 2'000'000;
  config.draws = 2000;
  const CheckedFit fit = fit_and_check(*posterior, config);
  EXPECT_EQ(fit.fit.q.kind, QKind::mixture);
  ASSERT_EQ(fit.findings.q.mode_mass.size(), 2u);
  EXPECT_NEAR(std::max(fit.findings.q.mode_mass[0], fit.findings.q.mode_mass[1]), 0.7, 4 * std::sqrt(0.21 / 2000));
  EXPECT_NEAR(fit.parameters[0].mean, -1.6, 4 * std::sqrt((1 + 16 * 4 * 0.21) * 2 / 2000));
  EXPECT_NE(fit.judgement.verdict, Verdict::trust_neither);
  config.fit.family = QKind::gaussian_full;  // one Gaussian cannot stand for both
  EXPECT_EQ(fit_and_check(*posterior, config).judgement.verdict, Verdict::trust_neither);
  config.fit.family = QKind::automatic;  // nor can components that know of one mode only
  config.fit.own_family = [](int dimension) { return std::make_unique<MixtureFamily>(dimension, 3, Covariance::full); };
  const CheckedFit own = fit_and_check(*posterior, config);
  EXPECT_FALSE(own.findings.component_per_mode);
  EXPECT_EQ(own.judgement.verdict, Verdict::trust_neither);
}

// A fit by one, two and three threads.
void expect_same_bits(const Posterior& posterior, QKind kind, CheckedFitConfig config) {
  const CheckedFit one = fit_and_check(posterior, config);
  EXPECT_EQ(one.fit.q.kind == QKind::mixture, kind == QKind::mixture);
  for (const int threads : {2, 3}) {
    config.fit.threads = threads;
    const CheckedFit more = fit_and_check(posterior, config);
    for (std::size_t k = 0; k < one.parameters.size(); ++k) {
      EXPECT_EQ(one.parameters[k].mean, more.parameters[k].mean) << threads;
      EXPECT_EQ(one.parameters[k].mcse, more.parameters[k].mcse) << threads;
    }
    EXPECT_TRUE(std::ranges::equal(one.refined.states.z.view().flat(), more.refined.states.z.view().flat())) << threads;
    EXPECT_TRUE(std::ranges::equal(one.refined.z0.view().flat(), more.refined.z0.view().flat())) << threads;
    EXPECT_EQ(one.log_q, more.log_q) << threads;
    EXPECT_EQ(one.findings.vcd.mean, more.findings.vcd.mean) << threads;
    EXPECT_EQ(one.findings.q.mode_mass, more.findings.q.mode_mass) << threads;
    EXPECT_EQ(one.findings.q.p_value, more.findings.q.p_value) << threads;
    EXPECT_EQ(one.judgement.reasons, more.judgement.reasons) << threads;
    EXPECT_EQ(one.gradients, more.gradients) << threads;
  }
}

TEST(CheckedFit, SameBitsForOneTwoAndThreeThreads) {
  CheckedFitConfig config;
  config.fit.budget.gradients = 400000;
  config.draws = 200;
  expect_same_bits(*make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"}), QKind::gaussian_full, config);
  expect_same_bits(*two_modes(), QKind::mixture, config);
}

// log q of the files is that of q over z, normalised.
TEST(CheckedFit, LogDensityOfQIsNormalisedOverZ) {
  const auto posterior = make_posterior(scaled_gaussian(2, 0.5), {"a", "b"});
  CheckedFitConfig config;
  config.fit.budget.gradients = 200000;
  config.draws = 100;
  const CheckedFit fit = fit_and_check(*posterior, config);
  const Whitening& w = fit.fit.q.whitening;
  GaussianFamily q(2, Covariance::full);
  copy(w.mean(), q.mean());
  copy(w.packed_lower(), q.scale());
  Matrix<double> z(2, fit.refined.z0.cols());
  for (int i = 0; i < z.cols(); ++i) w.to_z(fit.refined.z0.column(i), z.column(i));
  // scale_floor does not matter here: only the density is used
  std::vector<double> log_q(z.cols());
  q.log_density(z, Want::value, log_q, {});
  for (int i = 0; i < z.cols(); ++i) EXPECT_NEAR(log_q[i], fit.log_q0[i], 1e-6);
}

}  // namespace
}  // namespace hone
