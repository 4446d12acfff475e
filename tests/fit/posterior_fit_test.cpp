#include "hone/fit/posterior_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/assess/divergence.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/fit/fit.hpp"
#include "hone/target/density.hpp"
#include "hone/target/whitened.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/methods.hpp"
#include "tests/support/scaled_gaussian.hpp"

namespace hone {
namespace {

using test::scaled_gaussian;

TEST(FitPosterior, NoTuningOverScalesAndCorrelations) {
  constexpr int d = 7;
  const DensityTarget target(d, scaled_gaussian(d, 0.9));
  for (const bool vcd : {false, true}) {
    PosteriorFitConfig config;
    if (!vcd) config.objective = nullptr;
    const PosteriorFit fit = fit_posterior(target, config);
    EXPECT_TRUE(fit.converged);
    EXPECT_EQ(fit.modes, 1);
    // KL's gradient has no noise where q = p; VCD's has that of some thousand draws
    const double tolerance = vcd ? 0.1 : 0.01;
    for (int i = 0; i < d; ++i) {
      const double scale = std::pow(10.0, -3 + 6.0 * i / (d - 1));
      EXPECT_NEAR(fit.q.whitening.mean()[i] / scale, 3, tolerance) << i;
      EXPECT_NEAR(std::sqrt(fit.q.whitening.variance(i)) / scale, 1, tolerance) << i;
    }
  }
}

TEST(FitPosterior, IndependentCoordinatesAndLowRank) {
  constexpr int d = 7;
  const DensityTarget target(d, scaled_gaussian(d, 0.6));
  PosteriorFitConfig config;
  config.objective = nullptr;
  config.family = QKind::gaussian;
  const PosteriorFit independent = fit_posterior(target, config);
  EXPECT_TRUE(independent.q.whitening.is_diagonal());
  for (int i = 0; i < d; ++i) {  // KL's optimum: the conditional sds, 1 / √(precision)
    const double precision = (i == 0 || i == d - 1 ? 1 : 1 + 0.36) / (1 - 0.36), scale = std::pow(10.0, -3.0 + i);
    EXPECT_NEAR(std::sqrt(independent.q.whitening.variance(i)) / scale, 1 / std::sqrt(precision), 0.02) << i;
  }
  config.family = QKind::gaussian_low_rank;
  const PosteriorFit low_rank = fit_posterior(target, config);
  EXPECT_FALSE(low_rank.q.whitening.is_dense());
  for (int i = 0; i < d; ++i) EXPECT_NEAR(low_rank.q.whitening.mean()[i] / std::pow(10.0, -3.0 + i), 3, 0.1) << i;
}

// Correlations by curvature are exact for a Gaussian; `auto` uses them beyond 300 dimensions.
TEST(FitPosterior, CorrelationsByCurvature) {
  for (const int d : {7, 301}) {
    const DensityTarget target(d, scaled_gaussian(d, 0.9));
    PosteriorFitConfig config;
    config.objective = nullptr;
    config.starts = 2;
    config.family = d == 7 ? QKind::gaussian_curvature : QKind::automatic;
    const PosteriorFit fit = fit_posterior(target, config);
    EXPECT_EQ(fit.q.kind, QKind::gaussian_curvature);
    EXPECT_TRUE(fit.q.whitening.is_dense());
    EXPECT_EQ(fit.q.family->parameters().size(), 2 * static_cast<std::size_t>(d));
    for (int i = 0; i < d; ++i) {
      const double scale = std::pow(10.0, -3 + 6.0 * i / (d - 1));
      EXPECT_NEAR(fit.q.whitening.mean()[i] / scale, 3, 0.02) << i;
      EXPECT_NEAR(std::sqrt(fit.q.whitening.variance(i)) / scale, 1, 0.02) << i;
    }
  }
}

TEST(FitPosterior, SameBitsForOneAndTwoThreads) {
  const DensityTarget target(3, scaled_gaussian(3, 0.5));
  PosteriorFitConfig config;
  config.budget.gradients = 60000;
  std::vector<double> mean[2];
  for (const int threads : {1, 2}) {
    config.threads = threads;
    const PosteriorFit fit = fit_posterior(target, config);
    mean[threads - 1].assign(fit.q.whitening.mean().begin(), fit.q.whitening.mean().end());
    EXPECT_LT(fit.gradients, 62000);
  }
  EXPECT_EQ(mean[0], mean[1]);
}

TEST(FitPosterior, SearchesBeginWhereTheyAreTold) {
  const DensityTarget target(2, [](std::span<const double> z, std::span<double> g) {
    g[0] = 1000 - z[0];
    g[1] = -z[1];
    return z[1] < -50 ? -infinity : -0.5 * (square(g[0]) + square(g[1]));
  });
  PosteriorFitConfig config;
  config.budget.gradients = 1;
  config.init = Matrix<double>(2, 2);
  config.init(0, 0) = 990;
  config.init(0, 1) = 1010;
  const PosteriorFit fit = fit_posterior(target, config);
  ASSERT_EQ(fit.starts.size(), 8u);
  for (std::size_t k = 0; k < 8; ++k) {
    const double off = std::abs(fit.starts[k].start[0] - config.init(0, static_cast<int>(k % 2)));
    EXPECT_EQ(off == 0, k < 2) << off;
    EXPECT_LE(off, 2);
    EXPECT_NEAR(fit.starts[k].end[0], 1000, 0.01);
  }
  config.init(1, 1) = -60;
  EXPECT_THROW(fit_posterior(target, config), InputError);  // outside the support
  config.init = Matrix<double>(3, 1);
  EXPECT_THROW(fit_posterior(target, config), InputError);
  config.init = Matrix<double>(2, 9);
  EXPECT_THROW(fit_posterior(target, config), InputError);  // more than there are searches
}

TEST(FitPosterior, ImproperPosteriorsAreNamed) {
  const DensityTarget flat(2, [](std::span<const double> z, std::span<double> g) {
    g[0] = -z[0];
    g[1] = 0;
    return -0.5 * z[0] * z[0];
  });
  try {
    fit_posterior(flat, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("coordinate 2"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("improper"), std::string::npos);
  }
  const DensityTarget nowhere(1, [](std::span<const double>, std::span<double>) { return -infinity; });
  EXPECT_THROW(fit_posterior(nowhere, {}), InputError);
}

TEST(FitPosterior, ModelsThatThrowInPlaces) {
  const DensityTarget target(2, [](std::span<const double> z, std::span<double> g) {
    if (z[0] > 1.5) throw std::domain_error("too large");
    g[0] = -z[0];
    g[1] = -z[1];
    return -0.5 * (z[0] * z[0] + z[1] * z[1]);
  });
  PosteriorFitConfig config;
  config.budget.gradients = 100000;
  const PosteriorFit fit = fit_posterior(target, config);
  EXPECT_GT(fit.dropped_draws, 0);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(std::isfinite(fit.q.whitening.mean()[i]));
}

// A wide mode about 0 in three dimensions and a narrow one at 4.3 of its sds, of equal mass: hardly any search ends
// there by chance.
TEST(FitPosterior, FindsANarrowModeFarOut) {
  const auto density = [](std::span<const double> z, std::span<double> g) {
    double wide = -3 * std::log(2.0), narrow = -3 * std::log(0.3);
    for (const double x : z) {
      wide -= 0.5 * square(x / 2);
      narrow -= 0.5 * square((x - 5) / 0.3);
    }
    const double total = log_sum_exp(std::vector{wide, narrow});
    for (std::size_t i = 0; i < z.size(); ++i)
      g[i] = -std::exp(wide - total) * z[i] / 4 - std::exp(narrow - total) * (z[i] - 5) / 0.09;
    return total;
  };
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    PosteriorFitConfig config;
    config.seed = seed;
    config.kl_stages = 1;
    config.objective = nullptr;
    found += fit_posterior(DensityTarget(3, density), config).modes == 2;
  }
  EXPECT_GE(found, 17);
}

// eq. gradient_term2 in a stage of the fit: whitened coordinates, random lengths and step sizes, leave-one-out
// baseline. The mean of the ascent must be minus the gradient of the VCD itself, by differences of its value under
// the same kernel.
TEST(FitPosterior, TheGradientOfAStageIsThatOfTheVcd) {
  const DensityTarget target(1, [](std::span<const double> z, std::span<double> g) {  // a skew density
    g[0] = 2 - std::exp(0.5 * z[0]);
    return 2 * z[0] - 2 * std::exp(0.5 * z[0]);
  });
  const Whitening whitening = Whitening::dense({2.5}, std::vector<double>{0.9});
  const WhitenedTarget whitened(target, whitening);
  FitConfig config;
  config.objective = test::by_vcd({.entropy = Entropy::sampled, .baseline = BaselineKind::leave_one_out});
  config.kernel = test::hmc({5, 4, StepSizes::varied});
  config.refine = {.steps = 2, .adapt = Adapt::off, .step_size = 0.4, .acceptance = 0.8};
  config.optimizer = {.kind = OptimizerKind::adam,  // θ does not move
                      .rate_location = 0,
                      .rate_scale = 0,
                      .rate_weight = 0,
                      .decay = 1,
                      .decay_every = 0,
                      .positive = PositiveSteps::logarithmic};
  config.draws_per_iteration = 16;
  GaussianFamily q(1, Covariance::full);
  const PhiloxSource random(3);
  Fit fit(whitened, q, config, random);
  Moments ascent[2];
  for (int i = 0; i < 40000; ++i) {
    fit.step();
    for (int k = 0; k < 2; ++k) ascent[k].add(fit.ascent()[k]);
  }
  for (int k = 0; k < 2; ++k) {
    Moments slope;
    for (std::uint64_t batch = 0; batch < 40; ++batch) {
      GaussianFamily moved(1, Covariance::full);
      const auto value = [&] {
        return estimate_divergence(whitened, moved,
                                   {.kernel = config.kernel, .steps = 2, .step_size = 0.4, .draws = 15000},
                                   PhiloxSource(batch))
            .vcd.mean;
      };
      slope.add(test::derivative_in(moved.parameters()[k], value, k == 0 ? 50 : 0.1));  // a step of 0.05 or 0.1
    }
    const double se = std::hypot(slope.estimate().se, ascent[k].estimate().se);
    EXPECT_LT(se, 0.02 * std::abs(slope.mean()));
    EXPECT_NEAR(ascent[k].mean(), -slope.mean(), 4 * se) << k;
  }
}

}  // namespace
}  // namespace hone
