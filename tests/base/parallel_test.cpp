#include "hone/base/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace hone {
namespace {

TEST(Team, EveryItemIsDoneOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    Team team(threads);
    EXPECT_EQ(team.threads(), threads);
    for (const int items : {0, 1, 2, 5, 100}) {
      std::vector<std::atomic<int>> done(items);
      team.for_shares(items, [&](int begin, int end, int thread) {
        EXPECT_LT(thread, threads);
        for (int i = begin; i < end; ++i) ++done[i];
      });
      for (const auto& times : done) EXPECT_EQ(times, 1);
    }
  }
}

TEST(Team, ManyRoundsInQuickSuccession) {
  Team team(3);
  std::vector<int> sum(9);
  for (int round = 0; round < 20'000; ++round)
    team.for_shares(9, [&](int begin, int end, int) {
      for (int i = begin; i < end; ++i) sum[i] += i;
    });
  for (int i = 0; i < 9; ++i) EXPECT_EQ(sum[i], 20'000 * i);
}

TEST(Team, WakesUpAfterALongPause) {
  Team team(2);
  std::atomic<int> items = 0;
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    team.for_shares(2, [&](int begin, int end, int) {
      if (begin == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      items += end - begin;
    });
  }
  EXPECT_EQ(items, 10);
}

TEST(Team, AnExceptionReachesTheCallerAndTheTeamGoesOn) {
  Team team(2);
  for (const int bad : {0, 1}) {
    const auto share = [&](int begin, int, int) {
      if (begin == bad) throw std::runtime_error("no");
    };
    EXPECT_THROW(team.for_shares(2, share), std::runtime_error);
  }
  std::atomic<int> items = 0;
  team.for_shares(2, [&](int begin, int end, int) { items += end - begin; });
  EXPECT_EQ(items, 2);
}

}  // namespace
}  // namespace hone
