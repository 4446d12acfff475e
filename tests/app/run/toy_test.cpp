#include "app/run/toy.hpp"

#include <gtest/gtest.h>

#include "tests/support/temporary.hpp"

namespace hone {
namespace {

// The names in configuration files are those that the objects give themselves, and every kind has one.
TEST(Methods, HaveOneNameEach) {
  EXPECT_EQ(objective_names().size(), 4u);
  for (const auto& [name, kind] : objective_names()) {
    const auto objective = make_objective({.kind = kind});
    EXPECT_EQ(objective->name(), name);
    EXPECT_EQ(objective->clone()->name(), name);
    EXPECT_EQ(objective->refines(), kind != ObjectiveKind::kl);
    ASSERT_TRUE(objective->terms());
    EXPECT_EQ(objective->terms()->refines, objective->refines());
    EXPECT_EQ(refines(name), objective->refines());
  }
  EXPECT_TRUE(refines("of another version"));
  EXPECT_THROW(name_of(kernel_names(), static_cast<KernelKind>(-1)), Error);
  EXPECT_EQ(kernel_names().size(), 3u);
  for (const auto& [name, kind] : kernel_names()) {
    const auto kernel = make_kernel({kind});
    EXPECT_EQ(kernel->as_hmc() != nullptr, name == "hmc");
    EXPECT_EQ(wants_gradient(kernel->wants()), name != "random-walk");
  }
  EXPECT_THROW(make_kernel({KernelKind::hmc, 5, 5}), KeyError);
}

// An objective reports the terms that it was made with; engines read them.
TEST(Methods, SettingsReachTheTerms) {
  ObjectiveConfig config{.alpha = 0.3, .first_term = FirstTerm::score, .entropy = Entropy::sampled};
  ObjectiveTerms terms = make_objective(config)->terms().value();
  EXPECT_EQ(terms.alpha, 0.3);
  EXPECT_TRUE(terms.first && terms.start_score && terms.refined_score && terms.score_first());
  EXPECT_EQ(terms.entropy, Entropy::sampled);
  config.estimator = Estimator::large_t;
  terms = make_objective(config)->terms().value();
  EXPECT_TRUE(terms.refined_score && !terms.start_score);
  config.kind = ObjectiveKind::li2017;
  terms = make_objective(config)->terms().value();
  EXPECT_TRUE(!terms.first && !terms.start_score && terms.refined_score && !terms.uses_baseline());
  EXPECT_EQ(terms.alpha, 1);
  config.kind = ObjectiveKind::kl;
  config.first_term = FirstTerm::reparameterized;
  terms = make_objective(config)->terms().value();
  EXPECT_TRUE(terms.first && !terms.start_score && !terms.refined_score && !terms.uses_baseline());
}

ToyConfig quick() {
  ToyConfig config;
  config.iterations = 300;
  return config;
}

TEST(Toy, DefaultsAreThePapers) {
  ToyConfig config;
  resolve(config);
  EXPECT_EQ(config.steps, 3);
  EXPECT_EQ(config.kernel.leapfrog, 5);
  EXPECT_EQ(*config.iterations, 20000u);
  EXPECT_EQ(config.optimizer.rate_location, 0.01);
  EXPECT_EQ(config.optimizer.rate_scale, 0.005);
  EXPECT_EQ(config.optimizer.rate_weight, 0.001);
  EXPECT_EQ(config.optimizer.decay, 0.9);
  EXPECT_EQ(config.optimizer.decay_every, 2000u);
  EXPECT_EQ(*config.step_size, 0.25);
  EXPECT_EQ(*config.acceptance, 0.7);
  ToyConfig mixture;
  mixture.family = FamilyKind::mixture;
  mixture.objective.kind = ObjectiveKind::kl;
  resolve(mixture);
  EXPECT_EQ(*mixture.iterations, 50000u);
  EXPECT_EQ(*mixture.weights_from, 1000u);
}

TEST(Toy, ObjectivesStartFromTheSameQ) {
  ToyConfig kl = quick(), vcd = quick();
  kl.objective.kind = ObjectiveKind::kl;
  const auto a = starting_family(kl), b = starting_family(vcd);
  EXPECT_TRUE(std::ranges::equal(a->parameters(), b->parameters()));
}

TEST(Toy, ASummaryReadsBack) {
  for (const FamilyKind family : {FamilyKind::gaussian, FamilyKind::mixture_full}) {
    ToyConfig config = quick();
    config.family = family;
    const ToyResult result = run_toy(config, nullptr, nullptr);
    const ToyResult back = ToyResult::from_json(result.to_json(), "summary.json");
    EXPECT_EQ(back.to_json(), result.to_json());
    EXPECT_EQ(back.parameters, result.parameters);
  }
  EXPECT_THROW(ToyResult::from_json("{\"target\": 3}", "summary.json"), InputError);
  EXPECT_THROW(ToyResult::from_json("{\"tar", "summary.json"), InputError);
}

TEST(Toy, ItsConfigTomlRunsItAgain) {
  const test::TemporaryFolder folder;
  ToyConfig config = quick();
  config.target = Toy::banana;
  config.kernel.leapfrog_jitter = 2;
  config.seed = 77;
  const RunFolder run(folder.path() / "run");
  const ToyResult first = run_toy(config, &run, nullptr);
  ToyConfig again;
  toy_settings(again).read_file(run.path() / "config.toml");
  EXPECT_EQ(run_toy(again, nullptr, nullptr).parameters, first.parameters);
  EXPECT_TRUE(std::filesystem::exists(run.path() / "metrics.csv"));
  EXPECT_TRUE(std::filesystem::exists(run.path() / "summary.json"));
}

TEST(Toy, TheWholeRunHasTheSameBitsOnTwoThreads) {
  ToyConfig one = quick(), two = quick();
  one.draws_per_iteration = two.draws_per_iteration = 7;
  two.threads = 2;
  const ToyResult a = run_toy(one, nullptr, nullptr), b = run_toy(two, nullptr, nullptr);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.vcd.mean, b.vcd.mean);
  EXPECT_EQ(a.vcd.se, b.vcd.se);
  EXPECT_EQ(a.step_size, b.step_size);
}

}  // namespace
}  // namespace hone
