// Kernels leave the target invariant: started from exact draws, moments and a tail probability stay where they are.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/methods.hpp"
#include "tests/support/worlds.hpp"

namespace hone::test {
namespace {

struct Setting {
  const char* name;
  SomeKernel kernel;
  double good[3], bad[3];  // step sizes for each toy: a sensible one, and one whose proposals are mostly rejected
};
const Setting settings[] = {{"hmc", hmc({5, 0}), {0.3, 0.5, 0.25}, {0.45, 1.25, 0.5}},
                            {"hmc_jittered", hmc({5, 4}), {0.3, 0.5, 0.25}, {0.48, 1.3, 0.55}},
                            {"mala", mala(), {0.07, 0.5, 0.07}, {0.3, 2.5, 0.5}},
                            {"random_walk", random_walk(), {0.1, 0.5, 0.1}, {8, 16, 8}}};

class InvarianceOf : public testing::TestWithParam<std::tuple<Setting, Toy>> {};

TEST_P(InvarianceOf, HoldsWithAdaptationOffAndBetween) {
  const auto& [setting, toy] = GetParam();
  for (const Adapt adapt : {Adapt::off, Adapt::between})
    for (const bool good : {true, false}) {
      InvarianceCheck check;
      check.kernel = setting.kernel;
      check.adapt = adapt;
      check.step_size = (good ? setting.good : setting.bad)[static_cast<int>(toy)];
      check.batches = 12000;
      const Invariance result = check_invariance(toy, check);
      EXPECT_LT(worst(result.deviations), 4) << "step size " << check.step_size << describe(result.deviations);
      EXPECT_LT(largest_relative_se(result.deviations), 0.01) << describe(result.deviations);
      if (adapt == Adapt::between) continue;  // the step size recovers by itself
      EXPECT_GT(result.acceptance, good ? 0.5 : 0.02) << "step size " << check.step_size;
      EXPECT_LT(result.acceptance, good ? 1 : 0.4) << "step size " << check.step_size;
    }
}

std::string name_of(const testing::TestParamInfo<InvarianceOf::ParamType>& test) {
  const std::string toys[] = {"gaussian", "mixture", "banana"};
  return std::string(std::get<0>(test.param).name) + "_" + toys[static_cast<int>(std::get<1>(test.param))];
}

INSTANTIATE_TEST_SUITE_P(All, InvarianceOf,
                         testing::Combine(testing::ValuesIn(settings),
                                          testing::Values(Toy::gaussian, Toy::mixture, Toy::banana)),
                         name_of);

TEST(AdaptedCoordinates, LeaveTheTargetInvariant) {
  const TransportMap map = some_map();
  for (const Toy toy : {Toy::gaussian, Toy::mixture, Toy::banana}) {
    InvarianceCheck check;
    check.step_size = toy == Toy::mixture ? 0.5 : 0.25;
    check.batches = 12000;
    check.map = &map;
    const Invariance result = check_invariance(toy, check);
    EXPECT_LT(worst(result.deviations), 4) << describe(result.deviations);
    EXPECT_LT(largest_relative_se(result.deviations), 0.01) << describe(result.deviations);
    EXPECT_GT(result.acceptance, 0.5);
  }
}

// Adapting inside a refinement makes the kernel depend on the chains that it moves. The error is small:
// docs/math.md gives the numbers that this test prints.
TEST(AdaptInside, HasASmallError) {
  for (const int batch : {1, 64}) {
    InvarianceCheck check;
    check.adapt = Adapt::inside;
    check.batch = batch;
    check.batches = 2'000'000 / batch;
    const Invariance result = check_invariance(Toy::gaussian, check);
    for (const Deviation& d : result.deviations) {
      const double relative = d.errors * d.relative_se;
      std::printf("inside, batch %d, %s: relative error %.5f ± %.5f\n", batch, d.what.c_str(), relative, d.relative_se);
      EXPECT_LT(std::abs(relative), 0.01) << d.what;
      EXPECT_LT(d.relative_se, 0.005);
    }
  }
}

}  // namespace
}  // namespace hone::test
