// Trainings of several seeds, and evaluation of test data during training.

#include "app/run/evaluate.hpp"
#include "tests/app/run/small_training.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using namespace test;

TrainRunConfig tested() {
  TrainRunConfig config = small();
  config.test = {.every = 10, .points = 60, .samples = 20};
  return config;
}

std::string test_rows(const fs::path& folder) { return read_file(folder / "test_log_likelihood.csv"); }

TEST(TrainTest, ChangesNoBitOfTrainingAndIsWhatAnEvaluationThereFinds) {
  const test::TemporaryFolder folder;
  const fs::path plain = folder.path() / "plain", with = folder.path() / "with", half = folder.path() / "half";
  run(small(), plain);
  run(tested(), with);
  expect_same_run(plain, with);
  EXPECT_FALSE(fs::exists(plain / "test_log_likelihood.csv"));
  TrainRunConfig config = small();
  config.iterations = 20;
  run(config, half);
  EvaluateOptions options;
  options.importance->samples = 20;
  options.points = 60;
  evaluate_run(half, options);
  const std::string row = test_rows(half).substr(test_rows(half).find("\n20,60,20,"));
  EXPECT_NE(test_rows(with).find(row), std::string::npos) << row << test_rows(with);
  EXPECT_EQ(std::ranges::count(test_rows(with), '\n'), 5);
}

TEST(TrainTest, RowsAreTheSameHoweverARunCameThere) {
  const test::TemporaryFolder folder;
  const fs::path whole = folder.path() / "whole", parts = folder.path() / "parts";
  run(tested(), whole);
  TrainRunConfig config = tested();
  config.iterations = 20;
  run(config, parts);
  const std::string rows = test_rows(parts);
  EXPECT_TRUE(test_rows(whole).starts_with(rows));
  // Stopped during the evaluation at 20: there is a checkpoint but no row.
  write_file(parts / "test_log_likelihood.csv", rows.substr(0, rows.find("\n20,") + 1));
  config = tested();
  config.iterations = 25;
  config.threads = 2;
  run(config, parts, Resume::yes);
  EXPECT_EQ(test_rows(parts), rows);
  // Killed after a row that is later than any checkpoint.
  write_file(parts / "test_log_likelihood.csv", rows + "30,60,20,-1,1,-1,1\n");
  run(tested(), parts, Resume::yes);
  EXPECT_EQ(test_rows(parts), test_rows(whole));
  expect_same_run(whole, parts);
  run(tested(), parts, Resume::yes);  // nothing left to do
  EXPECT_EQ(test_rows(parts), test_rows(whole));
}

TEST(TrainTest, NeedsTestDataOnTheWayThatFit) {
  const test::TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 30; ++i) rows += i % 2 ? "1 0 1 1 0\n" : "0 1 0 0 1\n";
  write_file(folder.path() / "rows.amat", rows);
  TrainRunConfig config = tested();
  config.data = (folder.path() / "rows.amat").string();
  std::string said;
  train(config, folder.path() / "run", {.say = [&](const std::string& text) { said += text + "\n"; }});
  EXPECT_NE(said.find("no test data"), std::string::npos) << said;
  EXPECT_FALSE(fs::exists(folder.path() / "run/test_log_likelihood.csv"));
  config.test.every = 0;
  EXPECT_NE(error_of(config, folder.path() / "other").find("test.points"), std::string::npos);
}

// Seeds 3, 5 and 8 of small(), each trained alone in its own folder.
class TrainGroup : public testing::Test {
 protected:
  void SetUp() override {
    for (const SeedRun& single : alone_) {
      TrainRunConfig config = small();
      config.train.seed = single.seed;
      run(config, single.folder);
    }
  }
  void expect_as_alone(const std::vector<SeedRun>& runs) const {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      expect_same_run(alone_[i].folder, runs[i].folder);
      TrainRunConfig config;
      train_settings(config).read_file(runs[i].folder / "config.toml");
      EXPECT_EQ(config.train.seed, runs[i].seed);
    }
  }

  test::TemporaryFolder folder_;
  const std::vector<SeedRun> alone_ = seeds_in(folder_.path() / "alone", {3, 5, 8});
};

TEST_F(TrainGroup, HasTheBitsOfTheRunsAlone) {
  for (const int side_by_side : {0, 2, 3}) {
    const auto runs = seeds_in(folder_.path() / std::to_string(side_by_side), {3, 5, 8});
    const auto outcomes = train(small(), runs, {.side_by_side = side_by_side});
    ASSERT_EQ(outcomes.size(), 3u);
    for (const TrainOutcome& outcome : outcomes) {
      EXPECT_TRUE(outcome.summary.finished);
      EXPECT_EQ(outcome.failure, "");
      EXPECT_EQ(read_file(outcome.run.folder / "summary.json"), outcome.summary.to_json());
    }
    EXPECT_EQ(outcomes.front().summary.runs_side_by_side, std::max(1, side_by_side));
    EXPECT_EQ(outcomes.back().summary.runs_side_by_side, side_by_side == 3 ? 3 : 1);
    expect_as_alone(runs);
  }
}

// Runs at different iterations, one of them not started: those behind catch up first.
TEST_F(TrainGroup, GoesOnFromUnevenCheckpoints) {
  for (const int side_by_side : {1, 2, 3}) {
    const auto runs = seeds_in(folder_.path() / std::to_string(side_by_side), {3, 5, 8});
    for (const auto& [run_index, iterations] : {std::pair(0, 22u), std::pair(2, 10u)}) {
      TrainRunConfig config = small();
      config.train.seed = runs[run_index].seed;
      config.iterations = iterations;
      run(config, runs[run_index].folder);
    }
    train(small(), runs, {.resume = Resume::yes, .side_by_side = side_by_side});
    expect_as_alone(runs);
    const auto again = train(small(), runs, {.resume = Resume::yes});
    expect_as_alone(runs);
    for (const TrainOutcome& outcome : again) {  // clock.csv has whole microseconds
      const auto stored = nlohmann::json::parse(read_file(outcome.run.folder / "summary.json"));
      EXPECT_NEAR(stored["seconds"], outcome.summary.seconds, 1e-6);
      EXPECT_EQ(stored["runs_side_by_side"], outcome.summary.runs_side_by_side);
      EXPECT_TRUE(outcome.summary.finished);
    }
  }
}

TEST_F(TrainGroup, EveryRunIsTestedWithItsOwnSeed) {
  const auto runs = seeds_in(folder_.path() / "group", {3, 5, 8});
  train(tested(), runs, {.side_by_side = 3});
  expect_as_alone(runs);
  for (const SeedRun& single : runs) {
    TrainRunConfig config = tested();
    config.train.seed = single.seed;
    const fs::path alone = folder_.path() / ("tested-" + std::to_string(single.seed));
    run(config, alone);
    EXPECT_EQ(test_rows(alone), test_rows(single.folder));
  }
  EXPECT_NE(test_rows(runs[0].folder), test_rows(runs[1].folder));
}

TEST_F(TrainGroup, OneThatFailsDoesNotEndTheOthers) {
  for (const int side_by_side : {1, 3}) {
    const auto runs = seeds_in(folder_.path() / std::to_string(side_by_side), {3, 5, 8});
    TrainRunConfig config = small();
    config.iterations = 10;
    train(config, runs, {.side_by_side = side_by_side});
    auto found = find_checkpoint(runs[1].folder, [](const std::string&) {});
    for (NamedArray& array : found->checkpoint.state.arrays)
      if (array.name == "decoder.weight[0]")
        for (float& value : std::get<std::vector<float>>(array.values)) value = std::nanf("");
    write_checkpoint(runs[1].folder, found->checkpoint);
    const auto outcomes = train(small(), runs, {.resume = Resume::yes, .side_by_side = side_by_side});
    EXPECT_NE(outcomes[1].failure.find("no longer finite after iteration 1"), std::string::npos) << outcomes[1].failure;
    EXPECT_NE(outcomes[1].failure.find("seed-5/checkpoint.safetensors, iteration 10"), std::string::npos);
    for (const int sound : {0, 2}) {
      EXPECT_EQ(outcomes[sound].failure, "");
      expect_same_run(alone_[sound].folder, runs[sound].folder);
    }
    EXPECT_TRUE(find_checkpoint(runs[1].folder, [](const std::string&) {}));
  }
}

TEST_F(TrainGroup, BadInputWritesNothing) {
  const auto runs = seeds_in(folder_.path() / "group", {3, 5});
  fs::create_directories(runs[1].folder);
  write_file(runs[1].folder / "thesis.txt", "precious");
  EXPECT_THROW(train(small(), runs, {}), InputError);
  EXPECT_THROW(train(small(), runs, {.resume = Resume::yes}), InputError);
  EXPECT_FALSE(fs::exists(runs[0].folder));
  fs::remove(runs[1].folder / "thesis.txt");
  TrainRunConfig other = small();
  other.train.seed = 7;  // another run than the group's second
  run(other, runs[1].folder);
  EXPECT_THROW(train(small(), runs, {.resume = Resume::yes}), KeyError);
  EXPECT_FALSE(fs::exists(runs[0].folder));
  EXPECT_THROW(train(small(), {{1, runs[0].folder}, {2, runs[0].folder}}, {}), InputError);
  EXPECT_THROW(train(small(), std::vector<SeedRun>{}, {}), InputError);
}

}  // namespace
}  // namespace hone
