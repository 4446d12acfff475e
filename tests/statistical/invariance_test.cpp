// Kernels leave the target invariant: started from exact draws, moments and a tail probability stay where they are.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/worlds.hpp"

namespace hone::test {
namespace {

struct Setting {
  const char* name;
  KernelConfig kernel;
  double good, bad;  // step sizes: a sensible one and one whose proposals are mostly rejected
};
const Setting settings[] = {{"hmc", {KernelKind::hmc, 5, 0}, 0.3, 0.9},
                            {"hmc_jittered", {KernelKind::hmc, 5, 4}, 0.3, 0.9},
                            {"mala", {KernelKind::mala, 0, 0}, 0.15, 1.2},
                            {"random_walk", {KernelKind::random_walk, 0, 0}, 0.3, 8}};

class Invariance : public testing::TestWithParam<std::tuple<Setting, Toy>> {};

TEST_P(Invariance, HoldsWithAdaptationOffAndBetween) {
  const auto& [setting, toy] = GetParam();
  for (const Adapt adapt : {Adapt::off, Adapt::between})
    for (const double step_size : {setting.good, setting.bad}) {
      InvarianceCheck check;
      check.kernel = setting.kernel;
      check.adapt = adapt;
      check.step_size = step_size;
      const auto deviations = invariance_deviations(toy, check);
      EXPECT_LT(worst(deviations), 4) << "step size " << step_size << describe(deviations);
      EXPECT_LT(largest_relative_se(deviations), 0.01) << describe(deviations);
    }
}

std::string name_of(const testing::TestParamInfo<Invariance::ParamType>& test) {
  const std::string toys[] = {"gaussian", "mixture", "banana"};
  return std::string(std::get<0>(test.param).name) + "_" + toys[static_cast<int>(std::get<1>(test.param))];
}

INSTANTIATE_TEST_SUITE_P(All, Invariance,
                         testing::Combine(testing::ValuesIn(settings),
                                          testing::Values(Toy::gaussian, Toy::mixture, Toy::banana)),
                         name_of);

// Adapting inside a refinement makes the kernel depend on the chains that it moves. The error is there, and small:
// docs/math.md gives the figures that this test prints.
TEST(AdaptInside, HasASmallError) {
  for (const int batch : {1, 64}) {
    InvarianceCheck check;
    check.adapt = Adapt::inside;
    check.batch = batch;
    check.batches = 2'000'000 / batch;
    const auto deviations = invariance_deviations(Toy::gaussian, check);
    for (const Deviation& d : deviations) {
      const double relative = d.errors * d.relative_se;
      std::printf("inside, batch %d, %s: relative error %.5f ± %.5f\n", batch, d.what.c_str(), relative, d.relative_se);
      EXPECT_LT(std::abs(relative), 0.01) << d.what;
      EXPECT_LT(d.relative_se, 0.002);
    }
  }
}

}  // namespace
}  // namespace hone::test
