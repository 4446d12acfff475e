#include "hone/assess/map_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "hone/base/scalar.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/target/density.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

// Independent draws, one per chain, each made from standard normals.
template <class Make>
ChainStates draws_of(int dimension, int count, std::uint64_t seed, Make&& make) {
  ChainStates states(dimension, count, 1);
  PhiloxSource(seed).normals({Purpose::draw}, states.z.view().flat());
  for (int c = 0; c < count; ++c) make(states.z.column(c));
  return states;
}

// z_last sets the log scale of all others: exact in the family of maps.
constexpr double slope = 0.8;
void funnel(std::span<double> z) {
  for (std::size_t i = 0; i + 1 < z.size(); ++i) z[i] *= std::exp(slope * z.back());
}

TEST(MapFit, GaussianDrawsSeldomHaveOne) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const ChainStates states = draws_of(8, 256, seed, [](std::span<double>) {});
    found += better_map(states, 256, nullptr) != nullptr;
  }
  EXPECT_LE(found, 2);
}

// Chains that began at one start look alike: 8 starts of 16 chains, nine tenths of whose variance is their start's.
TEST(MapFit, StartsThatChainsRememberAreNoReason) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ChainStates states = draws_of(20, 128, seed, [](std::span<double>) {});
    Matrix<double> start(20, 8);
    PhiloxSource(seed + 100).normals({Purpose::draw}, start.view().flat());
    for (int c = 0; c < 128; ++c)
      for (int i = 0; i < 20; ++i) states.z(i, c) = std::sqrt(0.9) * start(i, c / 16) + std::sqrt(0.1) * states.z(i, c);
    found += better_map(states, 128, nullptr) != nullptr;
  }
  EXPECT_LE(found, 1);
}

// The gain of the true map is the negentropy that a Gaussian leaves: per coordinate, log sd − E log scale.
TEST(MapFit, FindsAFunnelWhoseScaleComesLast) {
  const ChainStates states = draws_of(5, 2048, 1, funnel);
  const std::optional<TransportMap> map = fitted_map(states, 2048);
  ASSERT_TRUE(map);
  std::set<int> moved;
  for (const TransportMap::Row& row : map->rows()) {
    moved.insert(row.coordinate);
    for (const TransportMap::Term& term : row.scale) EXPECT_EQ(term.from, 4);
  }
  EXPECT_EQ(moved, (std::set<int>{0, 1, 2, 3}));
  double expected = 0;
  for (int j = 0; j < 4; ++j) {
    Moments own, driver;
    for (int c = 0; c < states.count(); ++c) {
      own.add(states.z(j, c));
      driver.add(states.z(4, c));
    }
    expected += std::log(own.sd()) - slope * driver.mean();
  }
  EXPECT_NEAR(gain_of_map(*map, states), expected, 0.05);
  // Its u are standard normal where the draws were not.
  std::vector<double> u(5), trace(map->trace_size());
  Moments squares, fourth;
  for (int c = 0; c < states.count(); ++c) {
    map->to_u(states.z.column(c), u, trace);
    squares.add(square(u[0]));
    fourth.add(square(square(u[0])));
  }
  EXPECT_NEAR(squares.mean(), 1, 4 * squares.estimate().se);
  EXPECT_NEAR(fourth.mean(), 3, 4 * fourth.estimate().se);
}

// Squares tell no direction: of a banana, the coordinate that is squared comes first.
TEST(MapFit, FindsABanana) {
  const ChainStates states =
      draws_of(2, 1024, 2, [](std::span<double> z) { z[0] = 0.3 * z[0] + (square(z[1]) - 1) / std::sqrt(2.0); });
  const std::optional<TransportMap> map = fitted_map(states, 1024);
  ASSERT_TRUE(map);
  ASSERT_EQ(map->rows().size(), 1u);
  EXPECT_EQ(map->rows()[0].coordinate, 0);
  // sd of z_0 is √(1 + 0.09), given z_1 it is 0.3
  EXPECT_NEAR(gain_of_map(*map, states), std::log(std::sqrt(1.09) / 0.3), 0.15);
}

// L P = Λ R with Λ lower triangular and R orthogonal. The mean of a group, which comes last, comes first.
TEST(MapFit, HubsComeFirst) {
  constexpr int d = 5;
  Matrix<double> covariance(d, d);  // z_i = z_4 + noise
  for (int i = 0; i < d; ++i)
    for (int j = 0; j < d; ++j) covariance(i, j) = 1 + (i == j && i < 4 ? 0.5 + 0.1 * i : 0);
  covariance(4, 4) += 1e-3;
  const Whitening whitening = Whitening::dense(std::vector<double>(d), cholesky(covariance));
  const Rotation rotation = hubs_first(whitening, {});
  ASSERT_TRUE(rotation);
  for (int i = 0; i < d; ++i)
    for (int j = 0; j < d; ++j) EXPECT_NEAR(dot(rotation->column(i), rotation->column(j)), i == j ? 1 : 0, 1e-10);
  const Matrix<double> factor = whitening.factor();  // L Rᵀ: row 4 first, then 0, 1, …
  const int order[] = {4, 0, 1, 2, 3};
  for (int i = 0; i < d; ++i)
    for (int j = i + 1; j < d; ++j) {
      double element = 0;
      for (int k = 0; k < d; ++k) element += factor(order[i], k) * (*rotation)(j, k);
      EXPECT_NEAR(element, 0, 1e-10) << i << ' ' << j;
    }
  EXPECT_FALSE(hubs_first(Whitening::diagonal(std::vector<double>(d), std::vector<double>(d, 1.0)), {}));
}

TEST(MapFit, KeepsTheMapThatThereIs) {
  const ChainStates states = draws_of(5, 2048, 3, funnel), more = draws_of(5, 2048, 4, funnel);
  const auto map = better_map(states, 2048, nullptr);
  ASSERT_TRUE(map);
  EXPECT_FALSE(better_map(more, 2048, map.get()));
}

// Chains in a funnel whose moments are known: z_last ~ N(0, 1), the others N(0, exp(2 slope z_last)).
struct Walk {
  RefinedDraws draws;
  Estimate second, tail;  // z_last², and whether z_last < −1.64
};
Walk walk(ChainCoordinates coordinates, int threads) {
  constexpr int d = 5;
  constexpr double s = 1.2;
  const DensityTarget target(d, [](std::span<const double> z, std::span<double> g) {
    const double v = z[d - 1];
    double value = -0.5 * v * v - (d - 1) * s * v;
    g[d - 1] = -v - (d - 1) * s;
    for (int i = 0; i + 1 < d; ++i) {
      const double r = z[i] * std::exp(-s * v);
      value -= 0.5 * r * r;
      g[i] = -r * std::exp(-s * v);
      g[d - 1] += s * r * r;
    }
    return value;
  });
  GaussianFamily q(d, Covariance::full);
  SuperStarts starts{Matrix<double>(d, 8), std::vector<int>(8, 0)};
  PhiloxSource(9).normals({Purpose::start}, starts.z.view().flat());
  RefinedConfig config;
  config.coordinates = coordinates;
  config.gradients = 600'000;
  config.threads = threads;
  Walk result{refine_draws(target, q, starts, config), {}, {}};
  const ChainStates& states = result.draws.states;
  std::vector<double> squares, below;
  for (int c = 0; c < states.count(); ++c) {
    squares.push_back(square(states.z(d - 1, c)));
    below.push_back(states.z(d - 1, c) < -1.6448536 ? 1 : 0);
  }
  result.second = mean_over_chains(squares, states.chains);
  result.tail = mean_over_chains(below, states.chains);
  return result;
}

TEST(AdaptedCoordinates, ReachTheNeckOfAFunnel) {
  const Walk adapted = walk(ChainCoordinates::adapted, 1);
  EXPECT_TRUE(adapted.draws.adapted_coordinates);
  EXPECT_TRUE(arrived(adapted.draws.checks));
  EXPECT_NEAR(adapted.second.mean, 1, 4 * adapted.second.se);
  EXPECT_NEAR(adapted.tail.mean, 0.05, 4 * adapted.tail.se);
  EXPECT_LT(adapted.second.se, 0.06);
  // log p of the states is that over the target's coordinates
  const int d = adapted.draws.states.z.rows(), last = adapted.draws.states.count() - 1;
  const std::span<const double> z = adapted.draws.states.z.column(last);
  double value = -0.5 * square(z[d - 1]) - (d - 1) * 1.2 * z[d - 1];
  for (int i = 0; i + 1 < d; ++i) value -= 0.5 * square(z[i] * std::exp(-1.2 * z[d - 1]));
  EXPECT_NEAR(adapted.draws.states.log_p[static_cast<std::size_t>(last)], value, 1e-8 * (1 + std::abs(value)));
  const Walk affine = walk(ChainCoordinates::affine, 1);
  EXPECT_FALSE(affine.draws.adapted_coordinates);
  EXPECT_FALSE(arrived(affine.draws.checks));
}

TEST(AdaptedCoordinates, SameBitsOnAnyNumberOfThreads) {
  const Walk one = walk(ChainCoordinates::adapted, 1), three = walk(ChainCoordinates::adapted, 3);
  ASSERT_EQ(one.draws.states.count(), three.draws.states.count());
  for (int c = 0; c < one.draws.states.count(); ++c)
    for (int i = 0; i < one.draws.states.z.rows(); ++i) ASSERT_EQ(one.draws.states.z(i, c), three.draws.states.z(i, c));
}

}  // namespace
}  // namespace hone::test
