#include "app/run/rank_pace.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

bool warns(const std::string& text) { return text.find("warning: these ranks are slower than one") != text.npos; }

TEST(RankPace, AFitSaysWhatRanksBring) {
  SharedPace pace{
      .ranks = 4, .columns = 256, .gradient = 2e-5, .alone = 5.12e-3, .shared = 1.5e-3, .exchange = 0.22e-3};
  EXPECT_EQ(words(pace),
            "ranks: a gradient takes about 0.02 ms, and a batch of 256 about 5.12 ms on one rank and 1.5 ms on 4: "
            "1.28 ms to compute, 0.22 ms to exchange and wait");
  pace.shared = 5.2e-3;
  EXPECT_TRUE(warns(words(pace)));
}

TEST(RankPace, ATrainingSaysWhatRanksBring) {
  const RankPaces faster{.alone = {10, 0}, .shared = {6, 1}}, slower{.alone = {10, 0}, .shared = {12, 7}};
  EXPECT_EQ(faster.words(1, 2),
            "ranks: an iteration takes about 10 ms on one rank and 6 ms on 2: 5 ms to compute, 1 ms to exchange and "
            "wait");
  EXPECT_TRUE(warns(slower.words(1, 2)));
  EXPECT_FALSE(faster.whole(1, 2));
  EXPECT_TRUE(faster.whole(2, 4));  // 10 ms on one rank each is less than 2 · 6 ms on all ranks
  const RankPaces fastest{.alone = {10, 0}, .shared = {4, 1}};
  EXPECT_FALSE(fastest.whole(2, 4));
  EXPECT_TRUE(slower.whole(2, 4));
  EXPECT_TRUE(faster.whole(4, 4));
  EXPECT_NE(slower.words(2, 4).find("they train whole runs, 2 at a time\nwarning: 2 ranks have nothing to do"),
            std::string::npos);
}

}  // namespace
}  // namespace hone
