// Shows that the statistical tests can fail: at least one of their checks detects each planted fault
// (hone/base/planted.hpp). This program links a copy of the library in which faults can be planted.

#include <gtest/gtest.h>

#include "hone/base/planted.hpp"
#include "tests/support/worlds.hpp"

namespace hone::test {
namespace {

struct Verdict {
  double invariance = 0, gradient = 0;  // the worst deviation in standard errors
};

enum class Shape { gaussian, mixture };

Verdict examine(Fault fault, Shape shape = Shape::gaussian) {
  planted_fault = fault;
  Verdict verdict;
  InvarianceCheck invariance;
  verdict.invariance = worst(check_invariance(Toy::gaussian, invariance).deviations);

  const World world = bimodal_world();
  const KernelOracle oracle(world.density, Move1d::hmc, 0.3, 5);
  const Approximation q = shape == Shape::gaussian ? gaussian_q() : mixture_q();
  GradientCheck gradient;  // one draw per iteration shows best that a control variate has seen its own draw
  gradient.draws = 1;
  gradient.iterations = 1'500'000;
  const auto deviations = gradient_deviations(world, q, oracle, gradient);
  verdict.gradient = worst(deviations);
  planted_fault = Fault::none;
  EXPECT_LT(largest_relative_se(deviations), 0.01);
  return verdict;
}

constexpr double seen = 6;  // a fault must deviate more than the limit for a correct run (4)

TEST(PlantedFaults, NoneIsSeenWhereThereIsNone) {
  const Verdict verdict = examine(Fault::none);
  EXPECT_LT(verdict.invariance, 4);
  EXPECT_LT(verdict.gradient, 4);
}

TEST(PlantedFaults, NoMetropolisStep) { EXPECT_GT(examine(Fault::no_metropolis).invariance, seen); }
TEST(PlantedFaults, MissingHalfKick) { EXPECT_GT(examine(Fault::missing_half_kick).invariance, seen); }
TEST(PlantedFaults, MomentumNotRefreshed) { EXPECT_GT(examine(Fault::stale_momentum).invariance, seen); }
TEST(PlantedFaults, ScoreTermDropped) { EXPECT_GT(examine(Fault::score_term_dropped).gradient, seen); }
TEST(PlantedFaults, ScoreTermOfTheWrongSign) { EXPECT_GT(examine(Fault::score_term_sign).gradient, seen); }
TEST(PlantedFaults, RefinedScoreOfTheWrongSign) { EXPECT_GT(examine(Fault::refined_score_sign).gradient, seen); }
TEST(PlantedFaults, BaselineUpdatedBeforeUse) { EXPECT_GT(examine(Fault::baseline_after_update).gradient, seen); }

// the same in a mixture's stratified terms
TEST(PlantedFaults, ScoreTermsOfAMixture) {
  EXPECT_LT(examine(Fault::none, Shape::mixture).gradient, 4);
  EXPECT_GT(examine(Fault::score_term_dropped, Shape::mixture).gradient, seen);
  EXPECT_GT(examine(Fault::score_term_sign, Shape::mixture).gradient, seen);
  EXPECT_GT(examine(Fault::refined_score_sign, Shape::mixture).gradient, seen);
  EXPECT_GT(examine(Fault::baseline_after_update, Shape::mixture).gradient, seen);
}

}  // namespace
}  // namespace hone::test
