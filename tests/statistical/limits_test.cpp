// Limits where the answer is known in closed form, and what the control variate changes and what it does not.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/assess/divergence.hpp"
#include "hone/base/statistics.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/fit/fit.hpp"
#include "hone/target/density.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/methods.hpp"
#include "tests/support/worlds.hpp"

namespace hone::test {
namespace {

FitConfig still(const SomeObjective& objective, int steps = 3, int draws = 64) {
  FitConfig config;
  config.objective = objective;
  config.refine = {.steps = steps, .adapt = Adapt::off, .step_size = 0.3, .acceptance = 0.7};
  config.optimizer.rate_location = config.optimizer.rate_scale = config.optimizer.rate_weight = 0;
  config.draws_per_iteration = draws;
  return config;
}

// Mean and variance over iterations of every element of the gradient, with θ fixed.
std::vector<Moments> gradient_moments(const Target& target, Family& q, const FitConfig& config, int iterations,
                                      int settle = 0, std::uint64_t seed = 8) {
  const PhiloxSource random(seed);
  Fit fit(target, q, config, random);
  std::vector<Moments> moments(q.parameters().size());
  for (int i = 0; i < settle + iterations; ++i) {
    fit.step();
    if (i >= settle)
      for (std::size_t j = 0; j < moments.size(); ++j) moments[j].add(fit.ascent()[j]);
  }
  return moments;
}

void expect_same_mean(const std::vector<Moments>& a, const std::vector<Moments>& b) {
  double length = 0;  // of the gradient
  for (const Moments& element : a) length = std::hypot(length, element.mean());
  for (std::size_t j = 0; j < a.size(); ++j) {
    const Estimate x = a[j].estimate(), y = b[j].estimate();
    EXPECT_NEAR(x.mean, y.mean, 4 * std::hypot(x.se, y.se) + 1e-12) << "parameter " << j;
    EXPECT_LT(std::hypot(x.se, y.se), 0.02 * length) << "parameter " << j;
  }
}

// At q = p the function f is constant, so the value is zero whatever the kernel does; the gradient is zero only if
// the refined draws are draws of p.
TEST(Limits, TheGradientVanishesWhereQIsTheTarget) {
  Matrix<double> covariance(1, 1);
  covariance(0, 0) = 0.49;
  const GaussianTarget target({0.5}, covariance);
  GaussianFamily q(1, Covariance::diagonal);
  q.mean()[0] = 0.5;
  q.scale()[0] = 0.7;
  for (const Entropy entropy : {Entropy::analytic, Entropy::sampled})
    for (const auto& moments : gradient_moments(target, q, still(by_vcd({.entropy = entropy})), 20000)) {
      EXPECT_NEAR(moments.mean(), 0, 4 * moments.estimate().se);
      EXPECT_LT(moments.estimate().se, 0.005);
    }
  const Divergence value = estimate_divergence(target, q, {}, PhiloxSource(2));
  EXPECT_NEAR(value.vcd.mean, 0, 1e-12);
}

// Many steps of a good kernel are an exact kernel: the VCD is the symmetrised KL, in closed form between Gaussians.
TEST(Limits, AnExactKernelGivesTheSymmetrisedKl) {
  const World world = gaussian_world();  // N(0.4, 0.9²)
  const Approximation q = gaussian_q();  // N(−0.3, 0.6²)
  const double a = 0.36, b = 0.81, shift = 0.49;
  const double symmetrised = 0.5 * (a / b + b / a - 2 + shift * (1 / a + 1 / b));
  DivergenceConfig config;
  config.kernel = hmc({5, 4});
  config.steps = 40;
  config.step_size = 0.35;
  config.draws = 200'000;
  const Divergence value = estimate_divergence(*world.target, *q.family, config, PhiloxSource(2));
  EXPECT_NEAR(value.vcd.mean, symmetrised, 4 * value.vcd.se);
  EXPECT_LT(value.vcd.se, 0.01 * symmetrised);
}

TEST(Limits, TheVcdIsNotNegative) {
  const World worlds[] = {gaussian_world(), bimodal_world()};
  GaussianFamily q(1, Covariance::diagonal);
  for (const World& world : worlds)
    for (const double mean : {-2.0, -1.0, 0.0, 0.4, 1.0, 3.0})
      for (const double sd : {0.1, 0.5, 0.9, 2.0})
        for (const int t : {1, 3}) {
          q.mean()[0] = mean;
          q.scale()[0] = sd;
          const Divergence value = estimate_divergence(
              *world.target, q, {.kernel = hmc(), .steps = t, .step_size = 0.3, .draws = 20'000}, PhiloxSource(6));
          EXPECT_GT(value.vcd.mean, -4 * value.vcd.se) << mean << " " << sd;
        }
}

TEST(Limits, AlphaInterpolatesBetweenKlAndVcd) {
  const World world = bimodal_world();
  const Approximation q = mixture_q();
  const KernelOracle oracle(world.density, Move1d::hmc, 0.3, 5);
  for (const double alpha : {0.0, 0.5, 1.0}) {
    GradientCheck check;
    check.objective = by_vcd({.alpha = alpha});
    const auto deviations = gradient_deviations(world, q, oracle, check);
    EXPECT_LT(worst(deviations), 4) << "alpha " << alpha << describe(deviations);
    EXPECT_LT(largest_relative_se(deviations), 0.01);
  }
  // α = 0 follows KL's gradient draw by draw, not only in the mean
  const auto zero = gradient_moments(*world.target, *q.family, still(by_vcd({.alpha = 0})), 50);
  const auto kl = gradient_moments(*world.target, *q.family, still(by_kl()), 50);
  for (std::size_t j = 0; j < kl.size(); ++j) EXPECT_NEAR(zero[j].mean(), kl[j].mean(), 1e-12);
}

// A bound that no weight reaches changes no draw. One that all weights reach leaves the score at z0 with a bounded
// coefficient: at 0 it is the large-t estimator.
TEST(Limits, ABoundOfZeroIsTheLargeTEstimatorAndAHighOneIsNone) {
  const World world = bimodal_world();
  const Approximation q = mixture_q();
  const auto moments = [&](const VcdConfig& config) {
    return gradient_moments(*world.target, *q.family, still(by_vcd(config)), 50);
  };
  const auto expect_same = [](const auto& a, const auto& b) {
    for (std::size_t j = 0; j < a.size(); ++j) EXPECT_EQ(a[j].mean(), b[j].mean());
  };
  expect_same(moments({}), moments({.score_bound = 1e6}));
  expect_same(moments({.estimator = Estimator::large_t}), moments({.score_bound = 0}));
}

// What a bound takes from the mean gradient, by quadrature: E[score(z0) (w − bounded w)] for the weight w = f(z_t) − C,
// with C = E[f(z_t)]. And how many weights are cut.
struct BoundEffect {
  std::vector<double> bias;  // relative to the length of the exact gradient
  double share = 0;
};

BoundEffect effect_of_bound(const World& world, const Approximation& q, const KernelOracle& oracle, int t,
                            double bound) {
  std::vector<double> theta(q.family->parameters().begin(), q.family->parameters().end());
  const Function log_q = q.at(theta);
  const double c = oracle_values(oracle, world.density, log_q, t).refined;
  const auto excess = [&](double z) {
    const double w = world.density.log_p(z) - log_q(z) - c;
    return w - std::clamp(w, -bound, bound);
  };
  const auto beyond = oracle.apply(oracle.on_grid(excess), t);
  const auto cut = oracle.apply(oracle.on_grid([&](double z) { return excess(z) != 0 ? 1.0 : 0.0; }), t);
  const auto over_q = [&](const Function& of_z, const std::vector<double>& factor) {
    auto values = oracle.on_grid([&](double z) { return std::exp(log_q(z)) * of_z(z); });
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factor[i];
    return oracle.integrate(values);
  };
  BoundEffect effect{.bias = {}, .share = over_q([](double) { return 1; }, cut)};
  double length = 0;
  for (double& parameter : theta) {
    const auto score = [&](double z) { return derivative_in(parameter, [&] { return q.log_q(theta, z); }); };
    effect.bias.push_back(over_q(score, beyond));
    length = std::hypot(length,
                        derivative_in(parameter, [&] { return oracle_values(oracle, world.density, log_q, t).vcd(); }));
  }
  for (double& element : effect.bias) element /= length;
  return effect;
}

// The bounded gradient against the exact one: no bias where no weight reaches the bound, and where weights are cut the
// bias that quadrature gives, up to that of a bound of 0.
TEST(Limits, ABoundBiasesTheGradientOnlyWhereItCuts) {
  const World world = bimodal_world();
  const KernelOracle oracle(world.density, Move1d::hmc, 0.3, 5);
  for (const bool mixture : {false, true})
    for (const double bound : {100.0, 3.0, 1.0, 0.0}) {
      const Approximation q = mixture ? mixture_q() : gaussian_q();
      GradientCheck check;
      check.objective = by_vcd({.score_bound = bound});
      const auto deviations = gradient_deviations(world, q, oracle, check);
      const BoundEffect effect = effect_of_bound(world, q, oracle, check.steps, bound);
      SCOPED_TRACE((mixture ? "mixture, bound " : "gaussian, bound ") + std::to_string(bound) + ": cuts " +
                   std::to_string(effect.share) + describe(deviations));
      for (std::size_t j = 0; j < deviations.size(); ++j) {
        const double se = deviations[j].relative_se;
        EXPECT_NEAR(deviations[j].errors * se, effect.bias[j], 4 * se) << "parameter " << j;
        EXPECT_LT(se, 0.01);
      }
      if (bound == 100) {
        EXPECT_LT(effect.share, 1e-9);
      } else if (!mixture) {
        EXPECT_GT(worst(deviations), 20) << "a bias that is easy to see";
      }
    }
}

// The other ways to estimate the same gradient: the score function for the first term, a sampled entropy, a
// leave-one-out baseline, all against the oracle.
TEST(Limits, EveryFormOfTheEstimatorHasTheSameMean) {
  const World world = bimodal_world();
  const KernelOracle oracle(world.density, Move1d::hmc, 0.3, 5);
  for (const bool mixture : {false, true})
    for (const SomeObjective& objective : {
             by_vcd({.first_term = FirstTerm::score}),
             by_vcd({.first_term = FirstTerm::score, .entropy = Entropy::sampled}),
             by_vcd({.entropy = Entropy::sampled}),
             by_vcd({.baseline = BaselineKind::leave_one_out}),
             by_kl(),
             by_kl({.first_term = FirstTerm::score}),
         }) {
      const Approximation q = mixture ? mixture_q() : gaussian_q();
      GradientCheck check;
      check.objective = objective;
      const auto deviations = gradient_deviations(world, q, oracle, check);
      EXPECT_LT(worst(deviations), 4) << describe(deviations);
      EXPECT_LT(largest_relative_se(deviations), 0.01) << describe(deviations);
    }
}

// With few draws, a leave-one-out baseline over the wrong draws would bias a mixture's weights most.
TEST(Limits, LeaveOneOutIsUnbiasedWithTwoDraws) {
  const World world = bimodal_world();
  const Approximation q = mixture_q();
  const KernelOracle oracle(world.density, Move1d::hmc, 0.3, 5);
  GradientCheck check;
  check.objective = by_vcd({.baseline = BaselineKind::leave_one_out});
  check.draws = 2;
  check.iterations = 600'000;
  const auto deviations = gradient_deviations(world, q, oracle, check);
  EXPECT_LT(worst(deviations), 4) << describe(deviations);
  EXPECT_LT(largest_relative_se(deviations), 0.01) << describe(deviations);
}

// In two dimensions, beyond the oracle: appendix 3's analytic form against the plain one, full covariance.
TEST(Limits, AnalyticAndSampledEntropyHaveTheSameMean) {
  const auto target = make_toy(Toy::banana);
  GaussianFamily q(2, Covariance::full);
  q.mean()[1] = -1.5;
  const std::vector<double> lower = {0.6, -0.2, 0.9};
  std::ranges::copy(lower, q.scale().begin());
  const auto analytic = gradient_moments(*target, q, still(by_vcd({.entropy = Entropy::analytic})), 20000, 100);
  const auto sampled = gradient_moments(*target, q, still(by_vcd({.entropy = Entropy::sampled})), 20000, 100, 9);
  expect_same_mean(analytic, sampled);
}

// Adding 1,000 to log p changes neither the mean of the gradient nor, once C has settled, its variance.
TEST(Limits, AConstantInLogPChangesNothing) {
  const World world = bimodal_world();
  const DensityTarget lifted(1, [&](std::span<const double> z, std::span<double> gradient) {
    double value = 0;
    world.target->evaluate({z.data(), 1, 1}, Want::both, {&value, 1}, {gradient.data(), 1, 1});
    return value + 1000;
  });
  for (const bool mixture : {false, true}) {
    const Approximation q = mixture ? mixture_q() : gaussian_q();
    const auto plain = gradient_moments(*world.target, *q.family, still(by_vcd()), 10000, 400);
    const auto raised = gradient_moments(lifted, *q.family, still(by_vcd()), 10000, 400);
    for (std::size_t j = 0; j < plain.size(); ++j) {
      EXPECT_NEAR(raised[j].mean(), plain[j].mean(), 1e-9 * (1 + std::abs(plain[j].mean())));  // the same numbers
      EXPECT_NEAR(raised[j].variance(), plain[j].variance(), 1e-6 * plain[j].variance());
    }
  }
}

TEST(ControlVariate, LeavesTheMeanAloneAndLowersTheVariance) {
  const World world = bimodal_world();
  const DensityTarget lifted(1, [&](std::span<const double> z, std::span<double> gradient) {  // f is seldom near zero
    double value = 0;
    world.target->evaluate({z.data(), 1, 1}, Want::both, {&value, 1}, {gradient.data(), 1, 1});
    return value - 5;
  });
  for (const bool mixture : {false, true}) {
    const Approximation q = mixture ? mixture_q() : gaussian_q();
    const auto none = gradient_moments(lifted, *q.family, still(by_vcd({.baseline = BaselineKind::none})), 20000, 100);
    for (const BaselineKind kind : {BaselineKind::global, BaselineKind::leave_one_out}) {
      const auto with = gradient_moments(lifted, *q.family, still(by_vcd({.baseline = kind})), 20000, 100);
      expect_same_mean(none, with);
      for (std::size_t j = 0; j < with.size(); ++j) {
        const bool weight = mixture && j >= 4;  // C cancels from a stratified gradient of the weights
        EXPECT_LT(with[j].variance(), (weight ? 1.05 : 0.95) * none[j].variance()) << "parameter " << j;
      }
    }
  }
}

// Dropping the score at z0 is right for large t and wrong for small t.
TEST(LargeT, IsBiasedAtSmallTAndRightAtLargeT) {
  const World world = gaussian_world();
  const Approximation q = gaussian_q();
  for (const int t : {1, 30}) {
    const auto full = gradient_moments(*world.target, *q.family, still(by_vcd(), t), 5000, 100);
    const auto large_t =
        gradient_moments(*world.target, *q.family, still(by_vcd({.estimator = Estimator::large_t}), t), 5000, 100);
    double largest = 0;
    for (std::size_t j = 0; j < full.size(); ++j)
      largest = std::max(largest, std::abs(full[j].mean() - large_t[j].mean()) /
                                      std::hypot(full[j].estimate().se, large_t[j].estimate().se));
    if (t == 1)
      EXPECT_GT(largest, 20);
    else
      EXPECT_LT(largest, 4);
  }
}

}  // namespace
}  // namespace hone::test
