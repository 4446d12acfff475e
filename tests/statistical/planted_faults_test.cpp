// Shows that the statistical tests can fail: at least one of their checks detects each planted fault
// (hone/base/planted.hpp). This program links a copy of the library in which faults can be planted.

#include <gtest/gtest.h>

#include "hone/base/planted.hpp"
#include "tests/support/worlds.hpp"

namespace hone::test {
namespace {

enum class Shape { gaussian, mixture };

// The worst deviation of each check with a fault planted, in standard errors.
double invariance(Fault fault) {
  planted_fault = fault;
  const double result = worst(check_invariance(Toy::gaussian, {}).deviations);
  planted_fault = Fault::none;
  return result;
}

double invariance_of_map(Fault fault) {
  const TransportMap map = some_map();
  InvarianceCheck check;
  check.map = &map;
  planted_fault = fault;
  const double result = worst(check_invariance(Toy::gaussian, check).deviations);
  planted_fault = Fault::none;
  return result;
}

double gradient(Fault fault, Shape shape = Shape::gaussian) {
  const World world = bimodal_world();
  const KernelOracle oracle(world.density, Move1d::hmc, 0.3, 5);
  const Approximation q = shape == Shape::gaussian ? gaussian_q() : mixture_q();
  GradientCheck check;  // one draw per iteration shows best that a control variate has seen its own draw
  check.draws = 1;
  check.iterations = 1'500'000;
  planted_fault = fault;
  const auto deviations = gradient_deviations(world, q, oracle, check);
  planted_fault = Fault::none;
  EXPECT_LT(largest_relative_se(deviations), 0.01);
  return worst(deviations);
}

constexpr double seen = 6;  // a fault must deviate more than the limit for a correct run (4)

TEST(PlantedFaults, NoneIsSeenWhereThereIsNone) {
  EXPECT_LT(invariance(Fault::none), 4);
  EXPECT_LT(invariance_of_map(Fault::none), 4);
  EXPECT_LT(gradient(Fault::none), 4);
}

TEST(PlantedFaults, NoMetropolisStep) { EXPECT_GT(invariance(Fault::no_metropolis), seen); }
TEST(PlantedFaults, MissingHalfKick) { EXPECT_GT(invariance(Fault::missing_half_kick), seen); }
TEST(PlantedFaults, MomentumNotRefreshed) { EXPECT_GT(invariance(Fault::stale_momentum), seen); }
TEST(PlantedFaults, MissingDeterminantOfAMap) { EXPECT_GT(invariance_of_map(Fault::missing_log_det), seen); }
TEST(PlantedFaults, ScoreTermDropped) { EXPECT_GT(gradient(Fault::score_term_dropped), seen); }
TEST(PlantedFaults, ScoreTermOfTheWrongSign) { EXPECT_GT(gradient(Fault::score_term_sign), seen); }
TEST(PlantedFaults, RefinedScoreOfTheWrongSign) { EXPECT_GT(gradient(Fault::refined_score_sign), seen); }
TEST(PlantedFaults, BaselineUpdatedBeforeUse) { EXPECT_GT(gradient(Fault::baseline_after_update), seen); }

// the same in a mixture's stratified terms
TEST(PlantedFaults, ScoreTermsOfAMixture) {
  EXPECT_LT(gradient(Fault::none, Shape::mixture), 4);
  EXPECT_GT(gradient(Fault::score_term_dropped, Shape::mixture), seen);
  EXPECT_GT(gradient(Fault::score_term_sign, Shape::mixture), seen);
  EXPECT_GT(gradient(Fault::refined_score_sign, Shape::mixture), seen);
  EXPECT_GT(gradient(Fault::baseline_after_update, Shape::mixture), seen);
}

}  // namespace
}  // namespace hone::test
