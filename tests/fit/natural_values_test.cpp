// Values on the natural scale: each point is asked for once, a stop is heeded, and what is not finite is named.
#include "hone/fit/natural_values.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <thread>
#include <vector>

#include "hone/fit/checked_fit.hpp"
#include "hone/target/density.hpp"
#include "tests/support/scaled_gaussian.hpp"

namespace hone {
namespace {

using test::scaled_gaussian;

// The refined draws are asked for when their errors are wanted, and not again for the table; nor are states at which a
// chain stays.
TEST(NaturalValues, RefinedDrawsAreAskedForOnce) {
  std::map<std::vector<double>, int> calls;
  const auto counting = [&](std::span<const double> z, std::span<double> natural) {
    ++calls[{z.begin(), z.end()}];
    std::copy(z.begin(), z.end(), natural.begin());
  };
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"}, {"a", "b", "c"}, counting);
  const CheckedFit fit = fit_and_check(*posterior, {});
  const ChainStates& states = fit.refined.states;
  std::vector<double> z(3);
  int again = 0;
  for (int i = 0; i < states.count(); ++i) {
    fit.fit.q.whitening.to_z(states.z.column(i), z);
    ASSERT_TRUE(calls.contains(z));
    again += calls[z] > 1;
  }
  EXPECT_LT(again, 0.05 * states.count());  // where chains stayed as the kept states began
}

TEST(NaturalValues, KnownPointsHaveTheSameValues) {
  int calls = 0;
  const auto doubled = [&](std::span<const double> z, std::span<double> natural) {
    ++calls;
    natural[0] = 2 * z[0];
  };
  const auto posterior = make_posterior(scaled_gaussian(2, 0.5), {"a", "b"}, {"c"}, doubled);
  NaturalValues values(*posterior, nullptr);
  Matrix<double> z(2, 4);
  for (int i = 0; i < 4; ++i) z(0, i) = z(1, i) = i % 3;  // the last is the first
  const auto expect_doubled = [&](const Matrix<double>& found) {
    ASSERT_EQ(found.cols(), 4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(found(0, i), 2 * z(0, i));
  };
  expect_doubled(values.remembered(z));
  EXPECT_EQ(calls, 3);
  z(0, 1) = 7;
  expect_doubled(values.of(z));
  EXPECT_EQ(calls, 4);
  expect_doubled(values.taken(z));
  EXPECT_EQ(calls, 5);
  expect_doubled(values.of(z));  // forgotten
  EXPECT_EQ(calls, 8);
}

// A model whose values take a millisecond each: all of a fit would take ten seconds.
TEST(NaturalValues, AStopIsHeededAndLeavesFewerDraws) {
  std::atomic<bool> stop = false;
  int calls = 0;
  const auto slow = [&](std::span<const double> z, std::span<double> natural) {
    if (++calls == 100) stop = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::copy(z.begin(), z.end(), natural.begin());
  };
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"}, {"a", "b", "c"}, slow);
  CheckedFitConfig config;
  config.fit.budget.stop = &stop;
  const CheckedFit fit = fit_and_check(*posterior, config);
  EXPECT_TRUE(fit.interrupted);
  EXPECT_LT(calls, 5000);
  const RefinedDraws& r = fit.refined;
  const auto states = static_cast<std::size_t>(r.states.count()), draws = static_cast<std::size_t>(r.z0.cols());
  EXPECT_LT(states, 2000u);
  EXPECT_EQ(fit.natural_refined.cols(), r.states.count());
  EXPECT_EQ(r.states.moves.size(), states);
  EXPECT_TRUE(fit.log_p.size() == states && fit.log_q.size() == states && r.log_q.size() == states);
  EXPECT_EQ(fit.natural_q.cols(), r.z0.cols());
  EXPECT_TRUE(fit.log_p0.size() == draws && fit.log_q0.size() == draws && r.component.size() == draws);
  EXPECT_EQ(fit.weights.log_weight.size(), draws);
  EXPECT_EQ(fit.parameters.size(), 3u);
  EXPECT_EQ(fit.judgement.notes.back(),
            "the fit was stopped early: this result rests on the draws that it had by then");
}

TEST(NaturalValues, ThinnedStatesAreThoseOfTheirChains) {
  constexpr int chains = 3, each = 10;
  RefinedDraws r;
  r.states = r.before = ChainStates(1, chains, each);
  for (int i = 0; i < chains * each; ++i) {
    r.states.z(0, i) = r.states.log_p[static_cast<std::size_t>(i)] = i;
    r.states.moves[static_cast<std::size_t>(i)].energy = i;
    r.log_q.push_back(-i);
  }
  r.z0 = Matrix<double>(1, 140);
  r.component.resize(140);
  r.log_p0.resize(140);
  r.log_q0.resize(140);
  RefinedDraws same = r;
  thin_out(same, 200);
  EXPECT_EQ(same.states.count(), chains * each);
  EXPECT_EQ(same.z0.cols(), 140);
  thin_out(r, 80);  // four of ten
  ASSERT_EQ(r.states.per_chain(), 4);
  EXPECT_EQ(r.before.per_chain(), 4);
  EXPECT_EQ(r.z0.cols(), 100);
  EXPECT_TRUE(r.component.size() == 100u && r.log_p0.size() == 100u && r.log_q0.size() == 100u);
  const double kept[] = {1, 4, 6, 9};
  for (int i = 0; i < r.states.count(); ++i) {
    const auto place = static_cast<std::size_t>(i);
    EXPECT_EQ(r.states.z(0, i), i / 4 * each + kept[i % 4]);
    EXPECT_EQ(r.states.log_p[place], r.states.z(0, i));
    EXPECT_EQ(r.states.moves[place].energy, r.states.z(0, i));
    EXPECT_EQ(r.log_q[place], -r.states.z(0, i));
  }
}

TEST(NaturalValues, WhatIsNotFiniteIsNamed) {
  const auto odd = [](std::span<const double> z, std::span<double> natural) {
    natural[0] = z[0];
    natural[1] = std::nan("");
    natural[2] = z[1] > 3000 ? std::numeric_limits<double>::infinity() : z[1];  // its mean
  };
  const auto posterior = make_posterior(scaled_gaussian(2, 0.5), {"a", "b"}, {"a", "never", "half"}, odd);
  const std::string note = fit_and_check(*posterior, {}).judgement.notes.back();
  EXPECT_TRUE(note.starts_with("values that are not finite: never (at every draw), half (at ")) << note;
  EXPECT_NE(note.find(" % of the draws). The table has no figures for them"), std::string::npos) << note;
}

}  // namespace
}  // namespace hone
