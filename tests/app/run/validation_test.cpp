// Evaluations of validation data: the best model is kept, training stops early, and a run that was stopped and resumed
// has the same files. TensorBoard's event files. The plane of a latent plot.

#include <gmock/gmock.h>

#include "app/run/evaluate.hpp"
#include "app/run/event_file.hpp"
#include "app/run/latent_plot.hpp"
#include "app/run/test_curve.hpp"
#include "app/run/use.hpp"
#include "tests/app/run/small_training.hpp"

namespace hone {
namespace {

using namespace test;
using testing::HasSubstr;

TrainRunConfig validated(std::uint32_t iterations) {
  TrainRunConfig config = small();
  config.iterations = iterations;
  config.validation.every = 5;
  config.validation.points = 6;
  config.validation.samples = 20;
  return config;
}

TEST(Validation, TheBestModelIsThatOfTheBestRow) {
  const TemporaryFolder folder;
  const fs::path run_folder = folder.path() / "run";
  const TrainSummary summary = run(validated(40), run_folder);
  ASSERT_TRUE(summary.best);
  EXPECT_FALSE(summary.stopped_early);
  std::istringstream rows(read_file(run_folder / "validation_log_likelihood.csv"));
  std::string line;
  std::getline(rows, line);
  double best = -1e300;
  unsigned best_at = 0;
  int count = 0;
  for (; std::getline(rows, line); ++count) {
    unsigned at = 0;
    double value = 0;
    std::sscanf(line.c_str(), "%u,6,20,%lf", &at, &value);
    if (value > best) best = value, best_at = at;
  }
  EXPECT_EQ(count, 8);
  EXPECT_EQ(summary.best->iteration, best_at);
  EXPECT_EQ(checkpoint_of(run_folder, WhichModel::best, {}).checkpoint.state.iteration, best_at);
  EXPECT_EQ(checkpoint_of(run_folder, WhichModel::newest, {}).checkpoint.state.iteration, 40u);
  EXPECT_THAT(read_file(run_folder / "summary.json"), HasSubstr("\"stopped_early\": false"));
}

// A model that does not learn never improves on its first evaluation.
TEST(Validation, TrainingStopsAfterItsPatience) {
  const TemporaryFolder folder;
  TrainRunConfig config = validated(400);
  config.objective.kind = ObjectiveKind::kl;
  config.train.rate_mean = config.train.rate_scale = config.train.rate_model = 0;
  config.validation.patience = 3;
  const TrainSummary summary = run(config, folder.path() / "run");
  EXPECT_TRUE(summary.stopped_early);
  EXPECT_TRUE(summary.finished);
  EXPECT_EQ(summary.iterations, 20u);
  EXPECT_EQ(summary.best->iteration, 5u);
  EXPECT_EQ(run(config, folder.path() / "run", Resume::yes).iterations, 20u);  // nothing left to do
  config.validation.patience = 5;
  EXPECT_EQ(run(config, folder.path() / "run", Resume::yes).iterations, 30u);
}

TEST(Validation, AGroupGoesOnWithoutTheRunsThatStopped) {
  const TemporaryFolder folder;
  TrainRunConfig config = validated(60);
  config.validation.patience = 1;
  const auto together = train(config, seeds_in(folder.path() / "group", {1, 2, 3}), {.side_by_side = 3});
  for (const TrainOutcome& outcome : together) {
    EXPECT_EQ(outcome.failure, "");
    TrainRunConfig own = config;
    own.train.seed = outcome.run.seed;
    const fs::path alone = folder.path() / std::to_string(outcome.run.seed);
    run(own, alone);
    EXPECT_EQ(read_file(alone / best_checkpoint_name), read_file(outcome.run.folder / best_checkpoint_name));
    expect_same_run(alone, outcome.run.folder);
  }
}

TEST(Validation, ResumingHasTheSameBits) {
  const TemporaryFolder folder;
  const fs::path whole = folder.path() / "whole", stopped = folder.path() / "stopped";
  TrainRunConfig config = validated(40), part = validated(17);
  config.validation.patience = part.validation.patience = 4;
  run(config, whole);
  run(part, stopped);
  run(config, stopped, Resume::yes);
  expect_same_run(whole, stopped);
  for (const char* name : {"validation_log_likelihood.csv", best_checkpoint_name, "figures/latent.csv"})
    EXPECT_EQ(read_file(whole / name), read_file(stopped / name)) << name;
}

// What hone eval found is kept as long as its model is there: the best one longer than the newest.
TEST(Validation, ResumingKeepsTheEvaluationsOfModelsThatAreStillThere) {
  const TemporaryFolder folder;
  const fs::path at = folder.path() / "run";
  TrainRunConfig config = validated(20);
  config.objective.kind = ObjectiveKind::kl;
  config.train.rate_mean = config.train.rate_scale = config.train.rate_model = 0;  // the first evaluation stays best
  const std::uint32_t best = run(config, at).best->iteration;
  ASSERT_EQ(best, 5u);
  EvaluateOptions options;
  options.importance.emplace().samples = 20;
  options.points = 6;
  for (const std::string split : {"test", "validation"})
    for (const WhichModel which : {WhichModel::newest, WhichModel::best}) {
      options.split = split;
      options.which = which;
      evaluate_run(at, options);
    }
  const auto entries = [&] {
    std::string names;
    const auto summary = nlohmann::json::parse(read_file(at / "summary.json"));
    for (const auto& [key, value] : summary.items())
      if (key.ends_with("_log_likelihood")) names += key + ":" + value["iteration"].dump() + " ";
    return names;
  };
  const std::string of_best = "best_test_log_likelihood:5 best_validation_log_likelihood:5 ";
  run(config, at, Resume::yes);  // nothing is left to do
  EXPECT_EQ(entries(), of_best + "test_log_likelihood:20 validation_log_likelihood:20 ");
  config.iterations = 30;
  run(config, at, Resume::yes);
  EXPECT_EQ(entries(), of_best);
}

TEST(Validation, WhatContradictsIsRefused) {
  const TemporaryFolder folder;
  TrainRunConfig config = small();
  config.validation.patience = 2;
  config.validation.every = 0;
  EXPECT_THAT(error_of(config, folder.path() / "a"), HasSubstr("validation.every is 0"));
  config = validated(10);
  config.data = (folder.path() / "rows.amat").string();
  write_file(folder.path() / "rows.amat", "1 0 1\n0 1 0\n1 1 0\n0 0 1\n1 0 0\n0 1 1\n1 1 1\n0 0 0\n1 0 1\n0 1 0\n");
  config.batch = 4;
  EXPECT_THAT(error_of(config, folder.path() / "b"), HasSubstr("there are no validation data"));
  config.validation.split = 0.3;
  EXPECT_EQ(error_of(config, folder.path() / "c"), "");
  EXPECT_THROW(checkpoint_of(folder.path() / "none", WhichModel::best, {}), InputError);
}

TEST(EventFile, HasTheKnownChecksum) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);            // of every description of CRC-32C
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
}

TEST(LatentPlot, ThePrincipalPlaneOfAKnownCloud) {
  // along (3, 4, 0)/5 with variance 25, along (0, 0, 1) with variance 1: four points
  Matrix<double> points(3, 4);
  for (int c = 0; c < 4; ++c) {
    const double along = c % 2 ? 5 : -5, across = c < 2 ? 1 : -1;
    points(0, c) = 7 + 0.6 * along;
    points(1, c) = 0.8 * along;
    points(2, c) = across;
  }
  const PrincipalPlane plane = principal_plane(points);
  EXPECT_NEAR(plane.share[0], 25.0 / 26, 1e-12);
  EXPECT_NEAR(plane.share[1], 1.0 / 26, 1e-12);
  for (int c = 0; c < 4; ++c) {
    EXPECT_NEAR(plane.points(0, c), c % 2 ? 5 : -5, 1e-12);
    EXPECT_NEAR(std::abs(plane.points(1, c)), 1, 1e-12);
  }
}

}  // namespace
}  // namespace hone
