#include "hone/base/parallel.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"
#include "hone/base/shares.hpp"
#include "hone/base/solo.hpp"

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

std::vector<int> cut(Shares& shares, int threads, int items) {
  shares.cut(items);
  EXPECT_EQ(shares.begin(0), 0);
  EXPECT_EQ(shares.begin(threads), items);
  std::vector<int> count;
  for (int i = 0; i < threads; ++i) count.push_back(shares.begin(i + 1) - shares.begin(i));
  return count;
}

// Given how long threads take for an item, shares tend to those that all threads would finish at once.
TEST(Shares, FollowTheSpeedOfThreads) {
  Shares shares(3);
  EXPECT_EQ(cut(shares, 3, 11), (std::vector<int>{4, 4, 3}));
  EXPECT_EQ(cut(shares, 3, 3), (std::vector<int>{1, 1, 1}));
  const std::vector<double> each = {1e-3, 2e-3, 4e-3};
  const auto learn = [&](const std::vector<double>& seconds_per_item) {
    const std::vector<int> count = cut(shares, 3, 70);
    shares.learn([&](std::size_t i) { return count[i] * seconds_per_item[i]; });
  };
  for (int round = 0; round < 100; ++round) learn(each);
  EXPECT_EQ(cut(shares, 3, 70), (std::vector<int>{40, 20, 10}));
  EXPECT_EQ(cut(shares, 3, 3), (std::vector<int>{1, 1, 1}));  // one each, whatever the speed
  EXPECT_EQ(cut(shares, 3, 0), (std::vector<int>{0, 0, 0}));
  for (int round = 0; round < 100; ++round) learn({1e-8, 1e-8, 4e-8});  // too short to learn from
  EXPECT_EQ(cut(shares, 3, 70), (std::vector<int>{40, 20, 10}));
  for (int round = 0; round < 100; ++round) learn({1e-3, 1e-3, 1e-3});
  EXPECT_EQ(cut(shares, 3, 69), (std::vector<int>{23, 23, 23}));
  for (int round = 0; round < 100; ++round) learn({1e-3, 1e-3, 1e3});  // one that is stuck keeps some
  EXPECT_GE(cut(shares, 3, 70)[2], 3);
}

// Rounds that take longer than their work let the caller work alone for 0.1 s, then longer; quiet rounds end that.
TEST(Solo, FollowsTheTimeThatRoundsLose) {
  Solo solo;
  double now = 5;
  const auto rounds = [&](int count, double wall, double work) {
    for (int i = 0; i < count; ++i) solo.learn(now += wall, wall, work);
  };
  const auto busy = [&] {  // one of the threads has no core
    for (int i = 0; i < 10 && !solo.works_alone(now); ++i) rounds(1, 4e-3, 20e-6);
  };
  const auto alone_for = [&](double seconds) {
    return solo.works_alone(now + 0.99 * seconds) && !solo.works_alone(now + 1.01 * seconds);
  };
  rounds(1000, 60e-6, 20e-6);  // waking up, on a quiet machine
  rounds(100, 9e-3, 17e-3);    // long shares
  rounds(100, 3e-3, 2.8e-3);   // one thread has nearly all of the work
  EXPECT_FALSE(solo.works_alone(now));
  busy();
  EXPECT_TRUE(alone_for(0.1));
  now += 1;
  busy();
  EXPECT_TRUE(alone_for(0.2));
  now += 1;
  rounds(10, 4e-3, 7e-3);
  EXPECT_FALSE(solo.works_alone(now));
  busy();
  EXPECT_TRUE(alone_for(0.1));
  for (int i = 0; i < 10; ++i) now += 10, busy();
  EXPECT_TRUE(alone_for(3));
}

// With several threads for every CPU, whoever works.
TEST(Team, EveryItemIsDoneOnceOnABusyMachine) {
  std::atomic<bool> finished = false;
  std::vector<std::jthread> others;
  for (int i = 0; i < 4 * default_threads(); ++i)
    others.emplace_back([&] {
      while (!finished) continue;
    });
  Team team(std::max(2, default_threads()));
  std::vector<int> count(50);
  for (int round = 0; round < 2000; ++round)
    team.for_shares(50, [&](int begin, int end, int) {
      for (int i = begin; i < end; ++i) ++count[i];
    });
  finished = true;
  EXPECT_EQ(count, std::vector<int>(50, 2000));
}

TEST(Team, AsManyItemsAsThreadsAreOneEach) {
  Team team(3);
  for (int round = 0; round < 20; ++round)
    team.for_shares(3, [&](int begin, int end, int thread) {
      EXPECT_EQ(begin, thread);
      EXPECT_EQ(end, thread + 1);
      std::this_thread::sleep_for(std::chrono::microseconds(100 * thread));
    });
}

#ifdef __linux__

// Sets HONE_PIN until it goes.
struct PinWish {
  explicit PinWish(const std::string& wish) { setenv("HONE_PIN", wish.c_str(), 1); }
  ~PinWish() { unsetenv("HONE_PIN"); }
};

std::vector<int> cpus_of_this_thread() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

TEST(Team, ThreadsArePinnedWhenAskedAndTheCallerIsFreeAfterwards) {
  const std::vector<int> free = cpus_of_this_thread();
  if (free.size() < 2) GTEST_SKIP() << "there is only one CPU";
  const std::string list = std::to_string(free[1]) + "," + std::to_string(free[0]);
  for (const auto& [wish, order] :
       std::vector<std::pair<std::string, std::vector<int>>>{{"all", {free[0], free[1]}}, {list, {free[1], free[0]}}}) {
    const PinWish pin(wish);
    {
      Team team(2), second(2);  // one after the other
      for (Team* each : {&team, &second}) {
        std::vector<std::vector<int>> found(2);
        each->for_shares(2, [&](int, int, int thread) { found[thread] = cpus_of_this_thread(); });
        for (int thread = 0; thread < 2; ++thread) EXPECT_EQ(found[thread], std::vector<int>{order[thread]}) << wish;
      }
      std::vector<std::vector<int>> inner(2);  // the second thread of a team that is made inside a share
      team.for_shares(2, [&](int, int, int thread) {
        Team inside(2);
        inside.for_shares(2, [&](int, int, int i) {
          if (i == 1) inner[thread] = cpus_of_this_thread();
        });
      });
      EXPECT_EQ(inner[0], free);
      EXPECT_EQ(inner[1], free);
    }
    EXPECT_EQ(cpus_of_this_thread(), free);
  }
}

TEST(Team, TheCallerIsFreeAgainWhoeverEndsTheTeam) {
  const std::vector<int> free = cpus_of_this_thread();
  const PinWish pin("all");
  auto team = std::make_unique<Team>(1);
  auto second = std::make_unique<Team>(1);
  EXPECT_EQ(cpus_of_this_thread(), std::vector<int>{free[0]});
  std::jthread([&] { team.reset(); }).join();
  EXPECT_EQ(cpus_of_this_thread(), std::vector<int>{free[0]});
  std::jthread([&] { second.reset(); }).join();
  EXPECT_EQ(cpus_of_this_thread(), free);
}

TEST(Team, APinThatCannotBeIsAnInputError) {
  const std::vector<int> free = cpus_of_this_thread();
  for (const std::string& wish :
       std::vector<std::string>{"none", "0-", "1,", "3-1", "-1", "0;1", "100000", std::to_string(free.front())}) {
    const PinWish pin(wish);
    EXPECT_THROW(Team(static_cast<int>(free.size()) + 1), InputError) << wish;
  }
  for (const std::string wish : {"nonsense", "0,0"}) {
    const PinWish pin(wish);
    EXPECT_THROW(Team(1), InputError) << wish;
  }
  const PinWish pin("all");
  EXPECT_THROW(Team(static_cast<int>(free.size()) + 1), InputError);
  EXPECT_EQ(cpus_of_this_thread(), free);
}

#endif

}  // namespace
}  // namespace hone
