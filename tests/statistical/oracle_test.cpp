// The one-dimensional quadrature oracle: the exact value and gradient of the VCD, compared with the
// Monte-Carlo value and gradient. The oracle itself is checked first.

#include "tests/support/oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/assess/divergence.hpp"
#include "tests/support/methods.hpp"
#include "tests/support/worlds.hpp"

namespace hone::test {
namespace {

struct Setting {
  const char* kernel;
  Move1d move;
  SomeKernel refining;
  double step_size;
};
const Setting settings[] = {{"hmc", Move1d::hmc, hmc(), 0.3},
                            {"mala", Move1d::mala, mala(), 0.5},
                            {"random_walk", Move1d::random_walk, random_walk(), 1.0}};

double kl(const KernelOracle& oracle, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> terms(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_GE(a[i], 0);
    terms[i] = a[i] > 1e-300 && b[i] > 1e-300 ? a[i] * std::log(a[i] / b[i]) : 0;
  }
  return oracle.integrate(terms);
}

class Oracle : public testing::TestWithParam<std::tuple<Setting, bool>> {
 protected:
  Setting setting = std::get<0>(GetParam());
  World world = std::get<1>(GetParam()) ? bimodal_world() : gaussian_world();
  KernelOracle oracle{world.density, setting.move, setting.step_size, 5};

  SomeKernel kernel() const { return setting.refining; }
};

TEST_P(Oracle, LeavesTheTargetInvariant) {
  // ∫ p (Kᵗ h) = ∫ p h; the density itself, a sum of spikes where dz'/dp = 0, converges only weakly
  const auto p = oracle.on_grid([&](double z) { return std::exp(world.density.log_p(z)); });
  const Function functions[] = {[](double z) { return z; }, [](double z) { return z * z; },
                                [](double z) { return std::cos(3 * z); }, [](double z) { return std::tanh(5 * z); }};
  for (const Function& function : functions) {
    auto h = oracle.on_grid(function);
    auto moved = oracle.apply(h, 3);
    for (std::size_t i = 0; i < p.size(); ++i) {
      h[i] *= p[i];
      moved[i] *= p[i];
    }
    EXPECT_NEAR(oracle.integrate(moved), oracle.integrate(h), 1e-5);
  }
  const auto one = oracle.apply(oracle.on_grid([](double) { return 1; }), 5);
  for (const double x : one) EXPECT_NEAR(x, 1, 1e-9);
}

// eqs. def_improved_q, improvement_definition1, triangle_inequality and appendix 1
TEST_P(Oracle, TheThreeKlsAddUpToTheVcd) {
  for (const Approximation& q : {gaussian_q(), mixture_q()}) {
    const auto log_q = q.at(q.family->parameters());
    const auto density = oracle.on_grid([&](double z) { return std::exp(log_q(z)); });
    const auto target = oracle.on_grid([&](double z) { return std::exp(world.density.log_p(z)); });
    double previous = kl(oracle, density, target);
    const std::vector<int> times = {1, 3, 10};
    const auto carried = oracle.propagate(density, times);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const int t = times[i];
      const std::vector<double>& improved = carried[i];
      EXPECT_NEAR(oracle.integrate(improved), 1, 1e-9);
      const double q_p = kl(oracle, density, target);
      const double qt_p = kl(oracle, improved, target);
      const double qt_q = kl(oracle, improved, density);
      EXPECT_LT(qt_p, previous);        // eq. improvement_definition1, step by step
      EXPECT_GE(q_p + qt_q, qt_p);      // eq. triangle_inequality
      EXPECT_GT(q_p - qt_p + qt_q, 0);  // eq. new_divergence
      // the density carried by mass here, the operator on f there: eq. new_divergence_rearranged
      const OracleValues exact = oracle_values(oracle, world.density, log_q, t);
      EXPECT_NEAR(q_p - qt_p + qt_q, exact.vcd(), 3e-3 * exact.vcd());
      EXPECT_NEAR(q_p, -exact.elbo, 1e-9);
      previous = qt_p;
    }
  }
}

TEST_P(Oracle, MonteCarloValueAgrees) {
  std::vector<Deviation> deviations;
  for (const Approximation& q : {gaussian_q(), mixture_q()})
    for (const int t : {1, 3, 10}) {
      const OracleValues exact = oracle_values(oracle, world.density, q.at(q.family->parameters()), t);
      const PhiloxSource random(41);
      const Divergence estimate = estimate_divergence(
          *world.target, *q.family, {.kernel = kernel(), .steps = t, .step_size = setting.step_size, .draws = 400'000},
          random);
      deviations.push_back({"vcd, t = " + std::to_string(t), (estimate.vcd.mean - exact.vcd()) / estimate.vcd.se,
                            estimate.vcd.se / exact.vcd()});
      deviations.push_back(
          {"elbo", (estimate.elbo.mean - exact.elbo) / estimate.elbo.se, estimate.elbo.se / std::abs(exact.elbo)});
    }
  EXPECT_LT(worst(deviations), 4) << describe(deviations);
  EXPECT_LT(largest_relative_se(deviations), 0.01) << describe(deviations);
}

TEST_P(Oracle, MonteCarloGradientAgrees) {
  for (const bool mixture : {false, true})
    for (const int t : {1, 3, 10})
      for (const BaselineKind baseline : {BaselineKind::none, BaselineKind::global}) {
        const Approximation q = mixture ? mixture_q() : gaussian_q();
        GradientCheck check;
        check.objective = by_vcd({.baseline = baseline});
        check.kernel = kernel();
        check.step_size = setting.step_size;
        check.steps = t;
        const auto deviations = gradient_deviations(world, q, oracle, check);
        SCOPED_TRACE((mixture ? "mixture, t = " : "gaussian, t = ") + std::to_string(t) +
                     (baseline == BaselineKind::none ? ", no baseline" : ", global baseline"));
        EXPECT_LT(worst(deviations), 4) << describe(deviations);
        EXPECT_LT(largest_relative_se(deviations), 0.01) << describe(deviations);
      }
}

// The standard error equals the spread of estimates over seeds (its own relative error is 1 / √600).
TEST_P(Oracle, TheStandardErrorIsTheSpreadOverSeeds) {
  for (const Approximation& q : {gaussian_q(), mixture_q()}) {
    Moments value, se;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      const PhiloxSource random(seed);
      const Divergence estimate =
          estimate_divergence(*world.target, *q.family,
                              {.kernel = kernel(), .steps = 3, .step_size = setting.step_size, .draws = 1000}, random);
      value.add(estimate.vcd.mean);
      se.add(estimate.vcd.se);
    }
    EXPECT_NEAR(value.sd() / se.mean(), 1, 4 / std::sqrt(600.0));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Oracle, testing::Combine(testing::ValuesIn(settings), testing::Bool()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).kernel) +
                                  (std::get<1>(test.param) ? "_bimodal" : "_gaussian");
                         });

}  // namespace
}  // namespace hone::test
