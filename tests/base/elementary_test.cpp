#include "hone/base/elementary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "hone/base/random.hpp"

namespace hone {
namespace {

// Numbers in (0, 1], including both ends and the borders between ranges.
std::vector<double> units() {
  std::vector<double> u(200'000);
  PhiloxSource(5).uniforms({Purpose::accept}, u);
  for (int i = 0; i < 500; ++i) {
    const double tiny = i * 0x1p-53;
    for (const double x : {tiny + 0x1p-54, 1 - tiny, 0.5 + tiny, 0.5 - tiny, std::numbers::sqrt2 / 2 + tiny,
                           std::numbers::sqrt2 / 2 - tiny, 0.125 + tiny, 0.125 - tiny, 0.375 + tiny, 0.625 - tiny})
      u.push_back(x);
  }
  for (int k = 0; k <= 54; ++k) u.push_back(std::ldexp(1.0, -k));
  return u;
}

TEST(Elementary, LogarithmIsCorrectToAboutAnUlp) {
  for (const double u : units()) {
    const long double expected = std::log(static_cast<long double>(u));
    EXPECT_LE(std::abs(log_unit(u) - expected), 2.3e-16L * std::abs(expected)) << u;
  }
}

TEST(Elementary, CosineAndSineOfATurn) {
  for (const double v : units()) {
    const long double angle = 2 * std::numbers::pi_v<long double> * v;
    const CosSin turn = cos_sin_turn(v);
    EXPECT_NEAR(turn.cos, static_cast<double>(std::cos(angle)), 2.3e-16) << v;
    EXPECT_NEAR(turn.sin, static_cast<double>(std::sin(angle)), 2.3e-16) << v;
  }
}

TEST(Elementary, WholeQuartersAreExact) {
  for (const auto& [v, cos, sin] :
       std::vector<std::array<double, 3>>{{0, 1, 0}, {0.25, 0, 1}, {0.5, -1, 0}, {0.75, 0, -1}, {1, 1, 0}}) {
    EXPECT_EQ(cos_sin_turn(v).cos, cos) << v;
    EXPECT_EQ(cos_sin_turn(v).sin, sin) << v;
  }
}

}  // namespace
}  // namespace hone
