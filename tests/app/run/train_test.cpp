#include "app/run/train.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/run/evaluate.hpp"
#include "app/run/provenance.hpp"
#include "app/run/run_folder.hpp"
#include "tests/app/run/small_training.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using namespace test;

bool is_png(const fs::path& path) { return read_file(path).starts_with("\x89PNG"); }

TEST(TrainPictures, AreOfTheLastIterationAndTheSameHoweverARunCameThere) {
  const test::TemporaryFolder folder;
  const fs::path whole = folder.path() / "whole", stopped = folder.path() / "stopped";
  run(small(), whole);
  TrainRunConfig half = small();
  half.iterations = 20;
  run(half, stopped);
  EXPECT_EQ(nlohmann::json::parse(read_file(stopped / "figures" / "images.json"))["iteration"], 20);
  run(small(), stopped, Resume::yes);
  for (const char* name : {"images_data.png", "images_q.png", "images_refined.png", "images_samples.png"}) {
    EXPECT_TRUE(is_png(whole / "figures" / name)) << name;
    EXPECT_EQ(read_file(whole / "figures" / name), read_file(stopped / "figures" / name)) << name;
  }
  const auto json = nlohmann::json::parse(read_file(whole / "figures" / "images.json"));
  EXPECT_EQ(json["split"], "test");
  EXPECT_EQ(json["count"], 10);
  EXPECT_EQ(json["rows"], 28);
  EXPECT_EQ(json["iteration"], 40);
  EXPECT_EQ(json["steps"], 2);
}

TEST(TrainPictures, NoneOfDataThatAreNoImages) {
  const test::TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 30; ++i) rows += i % 2 ? "1 0 1 1 0\n" : "0 1 0 0 1\n";
  write_file(folder.path() / "rows.amat", rows);
  TrainRunConfig config = small();
  config.data = (folder.path() / "rows.amat").string();
  run(config, folder.path() / "run");
  EXPECT_FALSE(fs::exists(folder.path() / "run" / "figures" / "images.json"));
}

TEST(TrainPictures, OfAnyNumbersAndALatentSpaceOfOneDimension) {
  const test::TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 30; ++i) rows += i % 2 ? "-4,2,8,0\n" : "0,2,3,1\n";
  write_file(folder.path() / "x.csv", rows);
  TrainRunConfig config = small();
  config.data = (folder.path() / "x.csv").string();
  config.shape = {2, 2};
  config.likelihood = Density::gaussian_learned;
  config.latent = 1;
  run(config, folder.path() / "run");
  const fs::path figures = folder.path() / "run" / "figures";
  const auto json = nlohmann::json::parse(read_file(figures / "images.json"));
  EXPECT_EQ(json["low"], -4);
  EXPECT_EQ(json["high"], 8);
  EXPECT_TRUE(is_png(figures / "images_samples.png"));
  EXPECT_EQ(nlohmann::json::parse(read_file(figures / "latent.json"))["y"], "standard deviation of q");
  EXPECT_EQ(std::ranges::count(read_file(figures / "latent.csv"), '\n'), 31);
}

TEST(TrainSummary, KnowsALostRun) {  // numbers of good trainings and of failed ones
  EXPECT_FALSE(q_is_lost(-254.6, {143.6, 0}));
  EXPECT_FALSE(q_is_lost(-158.4, {128.4, 0}));
  EXPECT_FALSE(q_is_lost(-114.5, {NAN, 0}));  // nothing was refined
  EXPECT_TRUE(q_is_lost(-435550.7, {15083387.1, 0}));
  EXPECT_TRUE(q_is_lost(-281074.7, {1.6e12, 0}));
}

TEST(TrainSummary, SaysWhereItComesFrom) {
  const test::TemporaryFolder folder;
  run(small(), folder.path() / "run");
  const auto json = nlohmann::json::parse(read_file(folder.path() / "run" / "summary.json"));
  EXPECT_EQ(json["hone_version"], hone_version());
  EXPECT_EQ(json["machine"], host_text());
  EXPECT_NE(host_text().find(" thread"), std::string::npos);
  EXPECT_EQ(json["training_data"], 5000);
}

TEST(Train, WritesAWholeRunThatItsConfigTomlRunsAgain) {
  const test::TemporaryFolder folder;
  const TrainSummary summary = run(small(), folder.path() / "a");
  EXPECT_TRUE(summary.finished);
  EXPECT_EQ(summary.binarization, "made as bits");
  EXPECT_GT(summary.vcd.se, 0);
  EXPECT_EQ(read_file(folder.path() / "a/summary.json"), summary.to_json());
  TrainRunConfig again;
  train_settings(again).read_file(folder.path() / "a/config.toml");
  run(again, folder.path() / "b");
  expect_same_run(folder.path() / "a", folder.path() / "b");
}

TEST(Train, AStoppedAndResumedRunHasTheBitsOfOneThatNeverStopped) {
  std::vector<TrainRunConfig> kinds(3, small());
  kinds[1].objective.kind = ObjectiveKind::kl;
  kinds[1].train.precision = Precision::float64;
  kinds[1].train.optimizer = OptimizerKind::adam;
  kinds[2].train.model.kind = ModelKind::logistic_mf;
  kinds[2].hidden.reset();
  kinds[2].train.baseline = LatentBaseline::global;
  kinds[2].objective.first_term = FirstTerm::score;
  for (TrainRunConfig& config : kinds) {
    const test::TemporaryFolder folder;
    run(config, folder.path() / "whole");
    for (const std::uint32_t stop : {1u, 14u, 39u, 40u}) {
      const fs::path path = folder.path() / std::to_string(stop);
      TrainRunConfig first = config, second = config;
      first.iterations = stop;
      run(first, path);
      second.threads = 2;
      second.checkpoint_every = 3;
      run(second, path, Resume::yes);
      expect_same_run(folder.path() / "whole", path);
    }
  }
}

// Checkpoints hold no times; clock.csv does.
TEST(Train, TimesAreOfAllStretches) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "run";
  TrainRunConfig config = small();
  config.iterations = 10;  // between two reports
  const TrainSummary first = run(config, path);
  EXPECT_GT(first.seconds, 0);
  EXPECT_EQ(first.us_per_iteration, 1e6 * first.seconds / 10);
  std::string clock = read_file(path / "clock.csv");
  EXPECT_TRUE(clock.starts_with("iteration,seconds,runs\n10,"));
  write_file(path / "clock.csv", "iteration,seconds\n10,1000.5\n20,5000\n");  // the last row has no checkpoint
  config.iterations = 40;
  config.checkpoint_every = 15;
  const TrainSummary second = run(config, path, Resume::yes);
  EXPECT_GT(second.seconds, 1000.5);
  EXPECT_LT(second.seconds, 5000);
  EXPECT_EQ(second.us_per_iteration, 1e6 * second.seconds / 40);
  clock = read_file(path / "clock.csv");
  EXPECT_TRUE(clock.starts_with("iteration,seconds,runs\n10,1000.5\n15,1000.")) << clock;
  EXPECT_NE(clock.find("\n40,100"), std::string::npos) << clock;
  EXPECT_NE(read_file(path / "metrics.csv").find("\n14,1000."), std::string::npos);
  EXPECT_EQ(run(config, path, Resume::yes).seconds, std::stod(clock.substr(clock.find("\n40,") + 4)));
}

TEST(Train, AnotherReportIntervalChangesNoParameter) {
  const test::TemporaryFolder folder;
  TrainRunConfig config = small();
  run(config, folder.path() / "a");
  config.iterations = 20;
  run(config, folder.path() / "b");
  config.iterations = 40;
  config.report_every = 5;
  run(config, folder.path() / "b", Resume::yes);
  const auto state = [&](const char* name) {
    return find_checkpoint(folder.path() / name, [](const std::string&) {})->checkpoint.state;
  };
  const TrainState a = state("a"), b = state("b");
  EXPECT_EQ(a.step_size, b.step_size);
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (std::size_t i = 0; i < a.arrays.size(); ++i)
    EXPECT_EQ(a.arrays[i].values, b.arrays[i].values) << a.arrays[i].name;
}

TEST(Train, ARunFolderIsNeitherOverwrittenNorMistaken) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "run";
  TrainRunConfig config = small();
  EXPECT_EQ(error_of(config, path, Resume::yes), "");  // no checkpoint there: it starts
  EXPECT_NE(error_of(config, path).find("--resume"), std::string::npos);
  config.latent = 4;
  const std::string other = error_of(config, path, Resume::yes);
  EXPECT_NE(other.find("latent = 3, which is now 4"), std::string::npos) << other;
  config = small();
  config.data_seed = 2;
  EXPECT_NE(error_of(config, path, Resume::yes).find("data_seed = 1, which is now 2"), std::string::npos);
  config = small();
  config.iterations = 39;
  EXPECT_NE(error_of(config, path, Resume::yes).find("already made 40 iterations"), std::string::npos);
  {
    const FolderLock lock(path);
    EXPECT_NE(error_of(small(), path, Resume::yes).find("another process"), std::string::npos);
  }
  EXPECT_EQ(error_of(small(), path, Resume::yes), "");
  fs::create_directory(folder.path() / "other");
  write_file(folder.path() / "other/thesis.txt", "precious");
  EXPECT_NE(error_of(small(), folder.path() / "other", Resume::yes), "");
  EXPECT_NE(error_of(small(), folder.path() / "other"), "");
}

TEST(Train, ARunWithoutACheckpointBeginsAgainButNotAsAnother) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "run";
  TrainRunConfig config = small();
  run(config, path);
  const std::string whole = read_file(path / checkpoint_name);
  for (const char* name : {checkpoint_name, previous_checkpoint_name}) fs::remove(path / name);
  config.train.refine.steps = 3;
  const std::string other = error_of(config, path, Resume::yes);
  EXPECT_NE(other.find("config.toml has steps = 2, which is now 3"), std::string::npos) << other;
  EXPECT_EQ(error_of(small(), path, Resume::yes), "");
  EXPECT_EQ(read_file(path / checkpoint_name), whole);
}

TEST(Train, DataThatDoNotFitAreNamed) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "run", grey = folder.path() / "grey.npy";
  std::string npy = "\x93NUMPY\x01";
  npy += '\0';
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }";
  header.resize(117, ' ');
  npy += static_cast<char>(header.size() + 1);
  npy += '\0' + header + "\n";
  for (const double x : {0.5, 1.0, 2.0, 0.0, 1.0, 0.0}) npy.append(reinterpret_cast<const char*>(&x), sizeof x);
  write_file(grey, npy);
  TrainRunConfig config = small();
  config.data = grey.string();
  config.batch = 2;
  const auto expect = [&](const std::string& begin, const std::string& part) {
    const std::string error = error_of(config, path);
    EXPECT_TRUE(error.starts_with(begin)) << error;
    EXPECT_NE(error.find(grey.string()), std::string::npos) << error;
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_FALSE(fs::exists(path));
  };
  expect("data: ", "a Bernoulli likelihood needs binary data");
  config.binarization = Binarization::none;
  expect("binarization: ", "a Bernoulli likelihood needs binary data");
  config.binarization = Binarization::threshold;
  expect("data: ", "value 0 of datum 1 is 2: binarization needs values in [0, 1]");
  config.binarization = Binarization::automatic;
  config.train.model.kind = ModelKind::poisson_mf;
  config.hidden.reset();
  expect("data: ", "a Poisson likelihood needs counts: datum 0 has the value 0.5");
  config = small();
  config.binarization = Binarization::stochastic;
  EXPECT_EQ(error_of(config, path),
            "binarization: the data of synthetic are already bits, so stochastic has no effect; leave it at "
            "auto");
  config = small();
  config.data = "Mnist";
  EXPECT_NE(error_of(config, path).find("data: there is no data set 'Mnist'"), std::string::npos);
  EXPECT_NE(error_of(config, path).find("did you mean 'mnist'?"), std::string::npos);
}

TEST(Train, DataThatWereHeldOutAreNamedAsTheirFileCountsThem) {
  const test::TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += i == 37 ? "0,-3\n" : "1,2\n";
  write_file(folder.path() / "x.csv", rows);
  TrainRunConfig config = small();
  config.data = (folder.path() / "x.csv").string();
  config.likelihood = Density::poisson;
  for (const double share : {0.1, 0.5, 0.9}) {
    config.split = share;
    config.batch = 2;
    const std::string error = error_of(config, folder.path() / "run");
    EXPECT_TRUE(error.starts_with("data: " + config.data)) << error;
    EXPECT_NE(error.find("needs counts: datum 37 has the value -3 at position 1"), std::string::npos) << error;
    EXPECT_EQ(error.find("test.data"), std::string::npos) << error;
  }
}

TEST(Train, AFolderNeedsNoSlashToBeData) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder.path() / "photos");
  TrainRunConfig config = small();
  config.data = "photos";
  relative_to(folder.path(), config);
  EXPECT_EQ(config.data, (folder.path() / "photos").string());
  config.data = "mnist";  // a known data set
  config.labels = "photos";
  fs::create_directories(folder.path() / "mnist");
  relative_to(folder.path(), config);
  EXPECT_EQ(config.data, "mnist");
  EXPECT_EQ(config.labels, "photos");
}

TEST(Train, ADamagedCheckpointIsNamedAndTheOneBeforeUsed) {
  const test::TemporaryFolder folder;
  TrainRunConfig config = small();
  run(config, folder.path() / "whole");
  config.checkpoint_every = 15;
  run(config, folder.path() / "run");
  const fs::path current = folder.path() / "run" / checkpoint_name;
  write_file(current, read_file(current).substr(0, 5000));
  std::string heard;
  const auto say = [&](const std::string& text) { heard += text; };
  train(config, folder.path() / "run", {.resume = Resume::yes, .say = say});
  EXPECT_NE(heard.find(current.string()), std::string::npos);
  EXPECT_NE(heard.find("checkpoint.previous.safetensors, iteration 30"), std::string::npos) << heard;
  expect_same_run(folder.path() / "whole", folder.path() / "run");
}

TEST(Train, AParameterThatIsNotFiniteEndsTheRunAndNamesTheCheckpoint) {
  const test::TemporaryFolder folder;
  TrainRunConfig config = small();
  config.train.rate_model = 1e30;
  config.checkpoint_every = 1;
  try {
    run(config, folder.path() / "run");
    FAIL();
  } catch (const InputError&) {
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("no longer finite after iteration"), std::string::npos) << text;
    EXPECT_NE(text.find("smaller learning rates"), std::string::npos) << text;
    EXPECT_NE(text.find("checkpoint.safetensors, iteration"), std::string::npos) << text;
  }
  EXPECT_TRUE(find_checkpoint(folder.path() / "run", [](const std::string&) {}));
}

TEST(Train, DataInMemoryGiveTheBitsOfDataByName) {
  const test::TemporaryFolder folder;
  run(small(), folder.path() / "named");
  TrainOptions options;
  options.data = std::make_shared<DataSplits>(load_data(data_request(small(), {})));
  std::int64_t told = 0;
  options.watch = [&](std::int64_t done, std::int64_t total, const std::string&) {
    EXPECT_EQ(total, 40);
    told = done;
  };
  train(small(), folder.path() / "memory", options);
  expect_same_run(folder.path() / "named", folder.path() / "memory");
  EXPECT_EQ(told, 40);
}

TEST(Train, TestDataMayBeAFile) {
  const test::TemporaryFolder folder;
  std::string rows;
  for (int n = 0; n < 30; ++n) rows += n % 2 ? "1 0 1 0\n" : "0 1 1 1\n";
  write_file(folder.path() / "train.amat", rows);
  write_file(folder.path() / "test.amat", rows.substr(0, 80));
  TrainRunConfig config = small();
  config.data = (folder.path() / "train.amat").string();
  EXPECT_EQ(load_data(data_request(config, {})).test.size(), 0);
  config.test.data = (folder.path() / "test.amat").string();
  run(config, folder.path() / "run");
  EvaluateOptions options;
  options.importance = EvaluationConfig{.samples = 20, .burn_in = 2, .kept = 2, .points = {}};
  EXPECT_EQ(evaluate_run(folder.path() / "run", options).points, 10);
  config.test.data = "none.amat";
  EXPECT_NE(error_of(config, folder.path() / "other").find("test.data: none.amat"), std::string::npos);
  config.test.data = (folder.path() / "big.csv").string();
  config.train.model.kind = ModelKind::poisson_mf;
  config.hidden.reset();
  write_file(config.test.data, "a,b,c,d\n1,0,1,0\n1,0,1,1e38\n");
  const std::string error = error_of(config, folder.path() / "other");
  EXPECT_TRUE(error.starts_with("test.data: " + config.test.data +
                                ": a Poisson likelihood needs counts up to 16777216: datum 1"))
      << error;
}

TEST(Train, AStopIsHeardBeforeTheEnd) {
  const test::TemporaryFolder folder;
  const std::atomic<int> stop = SIGTERM;
  const TrainSummary summary = train(small(), folder.path() / "run", {.stop = &stop});
  EXPECT_FALSE(summary.finished);
  EXPECT_EQ(summary.iterations, 0u);
  EXPECT_TRUE(fs::exists(folder.path() / "run/summary.json"));
}

TEST(Evaluate, AddsToTheSummaryAndIsTheSameOnTwoThreads) {
  const test::TemporaryFolder folder;
  TrainRunConfig config = small();
  config.train.model.kind = ModelKind::gaussian_mf;
  config.hidden.reset();
  run(config, folder.path() / "run");
  EvaluateOptions options;
  options.importance->samples = 100;
  options.importance->burn_in = options.importance->kept = 10;
  options.points = 60;
  const RunEvaluation one = evaluate_run(folder.path() / "run", options);
  options.threads = 2;
  const RunEvaluation two = evaluate_run(folder.path() / "run", options);
  EXPECT_EQ(one.json, two.json);
  EXPECT_TRUE(one.summary->exact);
  const auto summary = nlohmann::json::parse(read_file(folder.path() / "run/summary.json"));
  for (const char* key :
       {"value", "mixture", "pilot", "se", "proposals", "points", "samples", "effective_samples", "exact"})
    EXPECT_TRUE(summary["test_log_likelihood"].contains(key)) << key;
  EXPECT_EQ(summary["model"], "gaussian-mf");
  EXPECT_EQ(summary["test_log_likelihood"]["points"], 60);
  EXPECT_EQ(summary["test_log_likelihood"]["proposals"].size(), 3u);
  // annealing keeps the other results, and they keep annealing's
  options.importance.reset();
  options.annealing = AnnealingOptions{{20, 2, 2}, 5};
  const RunEvaluation annealed = evaluate_run(folder.path() / "run", options);
  EXPECT_FALSE(annealed.summary);
  EXPECT_EQ(annealed.annealing->check->points, 5);
  const auto both = nlohmann::json::parse(read_file(folder.path() / "run/summary.json"))["test_log_likelihood"];
  EXPECT_EQ(both, nlohmann::json::parse(annealed.json));
  EXPECT_EQ(both["mixture"], summary["test_log_likelihood"]["mixture"]);
  for (const char* key : {"log_likelihood", "se", "chain_se", "ess", "acceptance", "steps", "chains", "leapfrog",
                          "points", "points_without_weight", "rejected_nonfinite", "seconds", "check"})
    EXPECT_TRUE(both["ais"].contains(key)) << key;
  EXPECT_EQ(both["ais"]["points"], 60);
  options.importance = EvaluationConfig{};
  options.importance->samples = 50;
  options.importance->proposals = {true, false, false};
  options.annealing.reset();
  const auto kept = nlohmann::json::parse(evaluate_run(folder.path() / "run", options).json);
  EXPECT_EQ(kept["samples"], 50);
  EXPECT_EQ(kept["ais"], both["ais"]);
  // resuming a finished run keeps it; further training does not
  run(config, folder.path() / "run", Resume::yes);
  EXPECT_NE(read_file(folder.path() / "run/summary.json").find("test_log_likelihood"), std::string::npos);
  config.iterations = 41;
  run(config, folder.path() / "run", Resume::yes);
  EXPECT_EQ(read_file(folder.path() / "run/summary.json").find("test_log_likelihood"), std::string::npos);
}

}  // namespace
}  // namespace hone
