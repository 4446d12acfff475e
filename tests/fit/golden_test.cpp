// Replays of the authors' own code on recorded random numbers (tests/golden/toys.json): fed the same numbers, our fit
// must agree with every recorded step.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/fit/fit.hpp"
#include "hone/target/toys.hpp"
#include "tests/support/methods.hpp"
#include "tests/support/replay.hpp"

namespace hone {
namespace {

using nlohmann::json;

constexpr double tolerance = 1e-10;  // relative to 1 + |value|

void expect_close(double ours, double theirs, const std::string& what) {
  EXPECT_NEAR(ours, theirs, tolerance * (1 + std::abs(theirs))) << what;
}

void expect_close(std::span<const double> ours, const json& theirs, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (std::size_t i = 0; i < ours.size(); ++i) expect_close(ours[i], theirs[i].get<double>(), what);
}

Toy toy_named(const std::string& name) {
  return name == "twoDgaussian" ? Toy::gaussian : name == "banana2D" ? Toy::banana : Toy::mixture;
}

// The order of use: for each component its noise, then for each HMC step the momenta and a uniform.
test::ReplaySource recorded_vcd(const json& draws, int components, int iterations) {
  test::ReplaySource source;
  std::size_t next = 1;  // the first is the start
  for (int it = 1; it <= iterations; ++it)
    for (int k = 0; k < components; ++k) {
      const Stream base{Purpose::draw, static_cast<std::uint32_t>(it), static_cast<std::uint32_t>(k)};
      source.record(base, draws[next++]);
      for (std::uint32_t step = 0; step < 3; ++step) {
        source.record({Purpose::momentum, base.iteration, base.datum, step}, draws[next++]);
        source.record({Purpose::accept, base.iteration, base.datum, step}, {draws[next++].get<double>()});
      }
    }
  return source;
}

test::ReplaySource recorded_kl(const json& draws, std::size_t first, int components, int iterations) {
  test::ReplaySource source;
  for (int it = 1; it <= iterations; ++it)
    for (int k = 0; k < components; ++k)
      source.record({Purpose::draw, static_cast<std::uint32_t>(it), static_cast<std::uint32_t>(k)}, draws[first++]);
  return source;
}

FitConfig paper_settings(const test::SomeObjective& objective) {
  FitConfig config;
  config.objective = objective;
  config.refine = {.steps = 3, .adapt = Adapt::inside, .step_size = 0.25, .acceptance = 0.7};
  config.optimizer.weights_from = objective->refines() ? 0 : 1000;
  return config;
}

class GoldenToys : public testing::TestWithParam<int> {
 protected:
  GoldenToys() {
    std::ifstream file(HONE_SOURCE_DIR "/tests/golden/toys.json");
    replay_ = json::parse(file).at(GetParam());
  }
  json replay_;
};
class GoldenGaussian : public GoldenToys {};
class GoldenMixture : public GoldenToys {};

TEST_P(GoldenGaussian, AgreesAtEveryStep) {
  ASSERT_EQ(replay_["q"], "gauss");
  const auto target = make_toy(toy_named(replay_["target"]));
  for (const bool vcd : {true, false}) {
    GaussianFamily q(2, Covariance::diagonal);
    std::ranges::copy(replay_["init_mu"].get<std::vector<double>>(), q.mean().begin());
    std::ranges::copy(replay_["init_sigma"].get<std::vector<double>>(), q.scale().begin());
    const json& trace = replay_[vcd ? "trace_vcd" : "trace_kl"];
    const auto random =
        vcd ? recorded_vcd(replay_["draws"], 1, 20) : recorded_kl(replay_["draws"], replay_["n_draws_vcd"], 1, 20);
    Fit fit(*target, q, paper_settings(vcd ? test::by_vcd() : test::by_kl()), random);
    ASSERT_EQ(trace.size(), 20u);
    for (const json& step : trace) {
      const FitStep& result = fit.step();
      SCOPED_TRACE("iteration " + std::to_string(result.iteration));
      expect_close(fit.ascent().first(2), step["grad_mu"], "grad_mu");
      expect_close(fit.ascent().last(2), step["grad_sigma"], "grad_sigma");
      expect_close(q.mean(), step["mu"], "mu");
      expect_close(q.scale(), step["sigma"], "sigma");
      if (vcd) {
        expect_close(fit.step_size(), step["eps"], "eps");
        expect_close(fit.baseline(), step["C"], "C");
        expect_close(result.vcd, step["vcd"], "vcd");
        expect_close(fit.evidence().refined.z.column(0), step["zt_last"], "zt");
        EXPECT_EQ(fit.evidence().refined.outcome[0] == Outcome::accepted, step["acc_last"][2] == 1);
      } else {  // the authors record the ELBO with the sigma that the step has made
        expect_close(fit.evidence().log_p0[0] + 1 + q.log_normalizer(0), step["elbo"], "elbo");
      }
    }
  }
}

TEST_P(GoldenMixture, AgreesAtEveryStep) {
  ASSERT_EQ(replay_["q"], "mix");
  const auto target = make_toy(toy_named(replay_["target"]));
  for (const bool vcd : {true, false}) {
    MixtureFamily q(2, 2, Covariance::diagonal);
    for (int k = 0; k < 2; ++k) {
      std::ranges::copy(replay_["init_mu"][k].get<std::vector<double>>(), q.mean(k).begin());
      std::ranges::copy(replay_["init_sigma"][k].get<std::vector<double>>(), q.scale(k).begin());
    }
    const json& trace = replay_[vcd ? "trace_vcd" : "trace_kl"];
    const auto random =
        vcd ? recorded_vcd(replay_["draws"], 2, 20) : recorded_kl(replay_["draws"], replay_["n_draws_vcd"], 2, 20);
    Fit fit(*target, q, paper_settings(vcd ? test::by_vcd() : test::by_kl()), random);
    ASSERT_EQ(trace.size(), 20u);
    for (const json& step : trace) {
      const FitStep& result = fit.step();
      SCOPED_TRACE("iteration " + std::to_string(result.iteration));
      for (int k = 0; k < 2; ++k) {
        expect_close(fit.ascent().subspan(4 * k, 2), step["grad_mu"][k], "grad_mu");
        expect_close(fit.ascent().subspan(4 * k + 2, 2), step["grad_sigma"][k], "grad_sigma");
        expect_close(q.mean(k), step["mu"][k], "mu");
        expect_close(q.scale(k), step["sigma"][k], "sigma");
      }
      std::vector<double> weight(2);
      q.log_weights(weight);
      for (double& w : weight) w = std::exp(w);
      expect_close(weight, step["weights"], "weights");
      if (vcd) {
        expect_close(fit.ascent().last(2), step["grad_softmax_weights"], "grad_softmax_weights");
        expect_close(fit.step_size(), step["eps"], "eps");
        expect_close(fit.baseline(), step["C"], "C");
        expect_close(result.vcd, step["vcd"], "vcd");
        expect_close(fit.evidence().refined.z.column(1), step["zt_last"], "zt");
      } else {
        expect_close(result.elbo, step["elbo"], "elbo");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Replays, GoldenGaussian, testing::Range(0, 3));
INSTANTIATE_TEST_SUITE_P(Replays, GoldenMixture, testing::Range(3, 5));

}  // namespace
}  // namespace hone
