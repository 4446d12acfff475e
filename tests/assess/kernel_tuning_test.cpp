#include "hone/assess/kernel_tuning.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/scalar.hpp"
#include "hone/target/density.hpp"

namespace hone {
namespace {

// A Gaussian with independent coordinates.
auto independent(std::vector<double> sd) {
  return [sd = std::move(sd)](std::span<const double> z, std::span<double> g) {
    double sum = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      g[i] = -z[i] / square(sd[i]);
      sum += 0.5 * z[i] * g[i];
    }
    return sum;
  };
}

// From a draw with sds s0, Hamilton's equations make E|z(t) − z(0)|² = Σ (1 − cos t/s)² s0² + s² sin² t/s. A trajectory
// of random length up to l steps moves by its mean over 1 … l and costs l / 2: here by a sum, there by pilots.
TEST(KernelTuning, TrajectoriesAreAsLongAsPays) {
  constexpr int d = 400, pilots = 32, longest = 512;
  constexpr double step = 0.1;
  Team team(1);
  for (const double wide : {1.0, 4.0, 13.0})
    for (const bool narrow : {false, true}) {
      std::vector<double> sd(d, 1.0);
      for (int i = 0; i < d / 4; ++i) sd[static_cast<std::size_t>(i)] = wide;
      const DensityTarget target(d, independent(sd));
      Chains chains(d, pilots);
      PhiloxSource(7).normals({Purpose::start}, chains.z.view().flat());
      for (int c = 0; c < pilots; ++c)
        for (int i = 0; i < d && !narrow; ++i) chains.z(i, c) *= sd[static_cast<std::size_t>(i)];
      target.evaluate(chains.z, Want::both, chains.value, chains.gradient);
      double moved = 0, most = 0, gain_at = 0;
      int best = 0;
      std::vector<double> gain = {0};
      for (int l = 1; l <= longest; ++l) {
        for (const double s : sd) {
          const double turn = l * step / s, drawn = narrow ? 1 : square(s);
          moved += square(1 - std::cos(turn)) * drawn + square(s * std::sin(turn));
        }
        gain.push_back(moved / l / l);
        if (gain.back() > most) best = l, most = gain.back();
      }
      const int found = paying_length(target, chains, {step, longest}, PhiloxSource(8), team);
      gain_at = gain[static_cast<std::size_t>(std::min(longest, 2 * found))];
      EXPECT_GT(gain_at, 0.99 * most) << wide << narrow << ": " << 2 * found << ", best " << best;
    }
}

// A chain that leaves the support ends the pilots; what was seen before counts.
TEST(KernelTuning, PilotsEndWhereThereIsNothing) {
  const DensityTarget wall(1, [](std::span<const double> z, std::span<double> g) {
    g[0] = std::abs(z[0]) > 1 ? std::nan("") : 0.0;
    return std::abs(z[0]) > 1 ? -infinity : 0.0;
  });
  Chains chains(1, 8);
  wall.evaluate(chains.z, Want::both, chains.value, chains.gradient);
  Team team(1);
  const int length = paying_length(wall, chains, {0.1, 512}, PhiloxSource(1), team);
  EXPECT_GE(length, 1);
  EXPECT_LE(length, 512);
}

}  // namespace
}  // namespace hone
