#include "app/run/kept_draws.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "hone/base/random.hpp"

namespace hone {
namespace {

struct Shape {
  int from_q = 128, supers = 8, per_super = 16, each = 30;
};

// Chains in one dimension: value(chain, what the chain began at, state). What a chain began at is −1 for a draw of q,
// and otherwise the number of its super-chain.
RefinedDraws some_chains(const Shape& shape, const std::function<double(int, int, int)>& value) {
  RefinedDraws r;
  r.states = ChainStates(1, shape.from_q + shape.supers * shape.per_super, shape.each);
  r.zt = Matrix<double>(1, shape.from_q);
  r.component.assign(static_cast<std::size_t>(shape.from_q), 0);
  r.chains_per_start = shape.per_super;
  for (int c = 0; c < r.states.chains; ++c)
    for (int s = 0; s < shape.each; ++s)
      r.states.z(0, c * shape.each + s) =
          value(c, c < shape.from_q ? -1 : (c - shape.from_q) / std::max(1, shape.per_super), s);
  return r;
}

double normal(int chain, int state) {
  double x = 0;
  PhiloxSource(5).normals({Purpose::start, static_cast<std::uint32_t>(chain), static_cast<std::uint32_t>(state)},
                          {&x, 1});
  return x;
}

// Split R-hat of the chains as they are written (Gelman et al., Bayesian Data Analysis, 3rd edition, 11.4).
double split_rhat(const RefinedDraws& r, const KeptDraws& kept) {
  const int halves = 2 * kept.chains, n = static_cast<int>(kept.cols.size()) / halves;
  std::vector<double> mean(static_cast<std::size_t>(halves));
  double within = 0, all = 0, between = 0;
  const auto at = [&](int half, int i) { return r.states.z(0, kept.cols[static_cast<std::size_t>(half * n + i)]); };
  for (int h = 0; h < halves; ++h) {
    double& m = mean[static_cast<std::size_t>(h)];
    for (int i = 0; i < n; ++i) m += at(h, i) / n;
    for (int i = 0; i < n; ++i) within += (at(h, i) - m) * (at(h, i) - m) / (n - 1) / halves;
    all += m / halves;
  }
  for (const double m : mean) between += n * (m - all) * (m - all) / (halves - 1);
  return std::sqrt(((n - 1.0) / n * within + between / n) / within);
}

TEST(KeptDraws, AreEightChainsOfWholeShortOnes) {
  const RefinedDraws r = some_chains({}, [](int c, int, int s) { return normal(c, s); });
  const KeptDraws kept = kept_draws(r, 4000);
  EXPECT_EQ(kept.chains, 8);
  EXPECT_EQ(kept.short_chains, 256);
  ASSERT_EQ(kept.cols.size(), 256u * 15);
  EXPECT_EQ(std::set<int>(kept.cols.begin(), kept.cols.end()).size(), kept.cols.size());
  for (std::size_t i = 0; i < kept.cols.size(); ++i) {
    const int chain = kept.short_chain[i], position = static_cast<int>(i % 480);  // in the long chain
    EXPECT_EQ(kept.cols[i] / 30, chain);
    EXPECT_EQ(kept.cols[i] % 30, 2 * (position % 15) + 1);
    // sixteen chains from draws of q, then the sixteen of one super-chain
    const int group = static_cast<int>(i / 480);
    EXPECT_EQ(chain, position < 240 ? 16 * group + position / 15 : 128 + 16 * group + (position - 240) / 15);
  }
}

TEST(KeptDraws, AreNoMoreThanAskedFor) {
  const auto value = [](int c, int, int s) { return normal(c, s); };
  for (const Shape shape : {Shape{}, Shape{117, 8, 16, 7}, Shape{16, 8, 2, 500}, Shape{128, 0, 0, 30},
                            Shape{3, 0, 0, 40}, Shape{0, 8, 16, 3}, Shape{128, 8, 16, 1}})
    for (const int most : {100, 333, 4000, 100'000}) {
      const KeptDraws kept = kept_draws(some_chains(shape, value), most);
      const auto count = static_cast<int>(kept.cols.size());
      EXPECT_LE(count, most);
      EXPECT_GE(count, std::min(most, (shape.from_q + shape.supers * shape.per_super) * shape.each) * 3 / 5);
      EXPECT_EQ(count % kept.chains, 0);
      EXPECT_EQ(count % kept.short_chains, 0);
      EXPECT_EQ(kept.short_chains % kept.chains, 0);
      EXPECT_EQ(std::set<int>(kept.cols.begin(), kept.cols.end()).size(), kept.cols.size());
      EXPECT_EQ(static_cast<int>(std::set<int>(kept.short_chain.begin(), kept.short_chain.end()).size()),
                kept.short_chains);
    }
}

TEST(KeptDraws, ChainsThatAgreeHaveAnRhatOfOne) {
  const RefinedDraws r = some_chains({}, [](int c, int, int s) { return normal(c, s); });
  EXPECT_NEAR(split_rhat(r, kept_draws(r, 4000)), 1, 0.005);
}

// Whatever sets chains apart by what they began at is seen, though every long chain has short ones of two kinds.
TEST(KeptDraws, ChainsThatDisagreeShowIt) {
  const auto rhat = [](const Shape& shape, const std::function<double(int, int, int)>& value) {
    const RefinedDraws r = some_chains(shape, value);
    return split_rhat(r, kept_draws(r, 4000));
  };
  EXPECT_GT(rhat({}, [](int c, int super, int s) { return normal(c, s) + (super == 5 ? 4 : 0); }), 1.1);
  EXPECT_GT(rhat({}, [](int c, int super, int s) { return normal(c, s) + (super % 2 == 1 ? 3 : 0); }), 1.1);
  EXPECT_GT(rhat({}, [](int c, int super, int s) { return normal(c, s) + (super >= 0 ? 1.5 : 0); }), 1.1);
  // Two modes: chains from draws of q are in either, as super-chains are.
  EXPECT_GT(rhat({},
                 [](int c, int super, int s) {
                   const int origin = super < 0 ? c : super;
                   return normal(c, s) + (origin % 2 == 0 ? -4 : 4);
                 }),
            1.1);
}

TEST(KeptDraws, ChainsThatStayInTheirModesShowItUnlessTheyCross) {
  RefinedDraws r = some_chains({128, 0, 0, 30}, [](int c, int, int s) { return normal(c, s) + (c % 3 == 0 ? -4 : 4); });
  for (int c = 0; c < 128; ++c) r.component[static_cast<std::size_t>(c)] = c % 3 == 0;
  EXPECT_GT(split_rhat(r, kept_draws(r, 4000)), 1.1);
  r = some_chains({128, 0, 0, 30}, [](int c, int, int s) { return normal(c, s) + ((c + s) % 3 == 0 ? -4 : 4); });
  for (int c = 0; c < 128; ++c) r.component[static_cast<std::size_t>(c)] = c % 2;
  r.checks.crosses_modes = true;
  EXPECT_NEAR(split_rhat(r, kept_draws(r, 4000)), 1, 0.005);
  EXPECT_EQ(kept_draws(r, 4000).short_chain.front(), 0);
  EXPECT_EQ(kept_draws(r, 4000).short_chain[30], 1);
}

}  // namespace
}  // namespace hone
