// A fit that is stopped ends with the result so far.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/statistics.hpp"
#include "hone/fit/checked_fit.hpp"
#include "hone/target/density.hpp"
#include "tests/support/scaled_gaussian.hpp"

namespace hone {
namespace {

using test::scaled_gaussian;

TEST(CheckedFit, AStopBeforeTheSearchesEndLeavesNothing) {
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"});
  const std::atomic<bool> stop = true;
  CheckedFitConfig config;
  config.fit.budget.stop = &stop;
  EXPECT_THROW(fit_and_check(*posterior, config), Stopped);
}

TEST(CheckedFit, AStopEndsItWithWhatThereIs) {
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"});
  std::atomic<bool> stop = false;
  CheckedFitConfig config;
  config.fit.budget.stop = &stop;
  config.draws = 200;
  config.on_starts = [&](const PosteriorFit& fit) {
    EXPECT_EQ(fit.starts.size(), 8u);  // the wider ones come later
    stop = true;
  };
  const CheckedFit fit = fit_and_check(*posterior, config);
  EXPECT_TRUE(fit.interrupted);
  EXPECT_TRUE(fit.fit.stages.empty());
  EXPECT_FALSE(fit.fit.converged);
  EXPECT_EQ(fit.refined.steps, 4);
  EXPECT_EQ(fit.judgement.verdict, Verdict::trust_neither);
  EXPECT_EQ(fit.judgement.reasons.front(), "the fit was interrupted before its chains had run");
  EXPECT_LT(fit.gradients - fit.fit.gradients, 3000);
  EXPECT_EQ(fit.parameters.size(), 3u);
  EXPECT_EQ(fit.parameter_count, 3u);
}

// A stop while modes are looked for far out, at any of these evaluations: the first starts are there, and q is theirs.
TEST(CheckedFit, AStopWhileModesAreLookedForLeavesTheFirstStarts) {
  std::atomic<bool> stop = false;
  int left = -1;  // evaluations until the stop
  const auto normal = scaled_gaussian(3, 0.5);
  const auto counted = [&, normal](std::span<const double> z, std::span<double> gradient) {
    if (left >= 0 && left-- == 0) stop = true;
    return normal(z, gradient);
  };
  const auto posterior = make_posterior(counted, {"a", "b", "c"});
  CheckedFitConfig config;
  config.fit.budget.stop = &stop;
  for (const int until : {1, 500, 4000, 4500}) {  // shells have 4,096 values, wider searches follow
    stop = false;
    left = -1;
    std::int64_t so_far = 0;
    config.on_starts = [&](const PosteriorFit& fit) {
      EXPECT_EQ(fit.starts.size(), 8u);
      EXPECT_EQ(fit.q.family->dimension(), 3);
      so_far = fit.gradients;
      left = until;
    };
    const CheckedFit fit = fit_and_check(*posterior, config);
    EXPECT_TRUE(fit.interrupted);
    EXPECT_EQ(fit.fit.starts.size(), 8u);
    EXPECT_TRUE(fit.fit.stages.empty());
    EXPECT_EQ(fit.judgement.verdict, Verdict::trust_neither);
    EXPECT_EQ(fit.judgement.reasons.front(), "the fit was interrupted before its chains had run");
    EXPECT_LT(fit.fit.gradients, so_far + until + 300);  // a batch of 64 ends; 208 values place the chains
  }
}

// Two modes far apart, which ask for a stop when, after the first starts, values along a line are compared.
class StoppingModes final : public Target {
 public:
  explicit StoppingModes(std::atomic<bool>& stop) : stop_(stop) {}
  int dimension() const override { return 1; }
  void stop_at_next_line() { armed_ = true; }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    constexpr int points = 16;  // of a line between two ends
    if (armed_ && want == Want::value && z.cols() == points) stop_ = true;
    for (int i = 0; i < z.cols(); ++i) {
      const double mode = z(0, i) > 0 ? 2 : -2, off = (z(0, i) - mode) / 0.1;
      if (wants_value(want)) value[static_cast<std::size_t>(i)] = -0.5 * off * off;
      if (wants_gradient(want)) gradient(0, i) = -off / 0.1;
    }
  }

 private:
  std::atomic<bool>& stop_;
  bool armed_ = false;
};

TEST(FitPosterior, AStopWhileModesAreComparedLeavesThoseOfTheFirstStarts) {
  std::atomic<bool> stop = false;
  StoppingModes target(stop);
  PosteriorFitConfig config;
  config.budget.stop = &stop;
  std::vector<int> mode_of_start;
  const PosteriorFit fit = fit_posterior(target, config, [&](const PosteriorFit& first, const Stage*) {
    EXPECT_EQ(first.modes, 2);
    mode_of_start = first.mode_of_start;
    target.stop_at_next_line();
  });
  EXPECT_TRUE(stop);
  EXPECT_TRUE(fit.stages.empty());
  EXPECT_EQ(fit.modes, 2);
  EXPECT_EQ(fit.mode_of_start, mode_of_start);
  EXPECT_EQ(fit.starts.size(), mode_of_start.size());
  EXPECT_EQ(fit.q.family->components(), 2);
}

// A stop after the first round of the refinement: its states are the result, as if the budget had ended there.
TEST(CheckedFit, AStopInARefinementLeavesItsLastRound) {
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"});
  std::atomic<bool> stop = false;
  CheckedFitConfig config;
  config.draws = 200;
  config.error = 0.002;  // it would take many rounds
  config.fit.budget.stop = &stop;
  int refining = 0;
  const auto run = [&](int rounds) {
    stop = false;
    refining = 0;
    return fit_and_check(*posterior, config, [&](const std::string& text, std::int64_t) {
      stop = stop || (text.starts_with("refining") && ++refining == rounds);
    });
  };
  const CheckedFit first = run(1), second = run(2);
  EXPECT_TRUE(first.interrupted && first.refined.capped);
  EXPECT_EQ(first.refined.steps, config.fit.steps);
  EXPECT_GT(second.refined.steps, first.refined.steps);
  for (const CheckedFit* fit : {&first, &second}) {
    EXPECT_EQ(fit->refined.at.back().steps, fit->refined.steps);
    EXPECT_EQ(fit->refined.states.moves.size(), static_cast<std::size_t>(fit->refined.states.count()));
    EXPECT_EQ(fit->judgement.notes.back(),
              "the fit was stopped early: this result rests on the draws that it had by then");
    for (const std::string& note : fit->judgement.notes)
      EXPECT_EQ(note.find("a larger budget"), std::string::npos) << "it was no budget that ended it: " << note;
  }
  // An energy is −log p before the step and half a χ² with 3 degrees of freedom.
  Moments kinetic;
  const ChainStates& states = second.refined.states;
  for (int i = 0; i < states.count(); ++i) kinetic.add(states.moves[i].energy + states.log_p[i]);
  EXPECT_NEAR(kinetic.mean(), 1.5, 5 * kinetic.sd() / std::sqrt(0.2 * states.count()));
  double accepted = 0;
  for (const StateMove& move : states.moves) accepted += move.acceptance / states.count();
  EXPECT_NEAR(accepted, second.refined.checks.acceptance, 0.02);
}

// A stop in the middle of a round, or while one is made longer, takes all of it back.
TEST(CheckedFit, AStopWithinARoundTakesItBack) {
  std::atomic<bool> stop = false;
  int refining = 0, rounds = 0, left = 0;  // evaluations until the stop
  const auto normal = scaled_gaussian(3, 0.5);
  const auto counted = [&, normal](std::span<const double> z, std::span<double> gradient) {
    if (refining >= rounds && left-- == 0) stop = true;
    return normal(z, gradient);
  };
  const auto posterior = make_posterior(counted, {"a", "b", "c"});
  CheckedFitConfig config;
  config.draws = 200;
  config.error = 0.002;
  config.fit.budget.stop = &stop;
  const auto run = [&](int round, int more) {
    stop = false;
    refining = 0;
    rounds = round;
    left = more;
    return fit_and_check(*posterior, config, [&](const std::string& text, std::int64_t) {
      refining += text.starts_with("refining");
      stop = stop || (more == 0 && refining == round);
    });
  };
  int steps = 0;
  for (int round = 1; round <= 5; ++round) {
    const CheckedFit whole = run(round, 0), broken = run(round, 900);
    EXPECT_GT(whole.refined.steps, steps);
    steps = whole.refined.steps;
    EXPECT_TRUE(broken.interrupted);
    EXPECT_EQ(broken.refined.steps, whole.refined.steps);
    EXPECT_EQ(broken.refined.states.log_p, whole.refined.states.log_p);
    EXPECT_EQ(broken.refined.before.log_p, whole.refined.before.log_p);
    EXPECT_EQ(broken.refined.log_pt, whole.refined.log_pt);
    EXPECT_EQ(broken.refined.checks.proposals, whole.refined.checks.proposals);
    EXPECT_EQ(broken.judgement.reasons, whole.judgement.reasons);
  }
}

}  // namespace
}  // namespace hone
