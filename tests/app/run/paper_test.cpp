// The paper's experiments: their cells, their states, their durations.

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "app/data/load.hpp"
#include "app/run/paper/best.hpp"
#include "app/run/paper/claims.hpp"
#include "app/run/paper/configs.hpp"
#include "app/run/paper/pace.hpp"
#include "app/run/paper/provenance.hpp"
#include "app/run/paper/table1.hpp"
#include "app/run/paper/timing.hpp"
#include "app/run/paper/training_runs.hpp"
#include "hone/base/error.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tiny_training.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

TEST(ShippedConfigs, AreTheFilesOfTheSource) {
  const fs::path folder = fs::path(HONE_SOURCE_DIR) / "configs";
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    TrainRunConfig read, inside = shipped_config(fs::relative(entry.path(), folder));
    train_settings(read).read_file(entry.path());
    EXPECT_EQ(train_settings(read).to_toml(), train_settings(inside).to_toml()) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, shipped_configs().size());
  EXPECT_EQ(files, 16u);
  EXPECT_THROW(paper_config("vae-cifar-vcd"), InputError);
}

// The recipe may change how a model is trained, not what is trained on what.
TEST(BestCells, HaveThePapersNetworksDataAndLength) {
  const auto rows = best_rows({.scale = Scale::full});
  ASSERT_EQ(rows.size(), 8u);
  for (const BestRow& row : rows) {
    const TrainRunConfig &best = row.cell.config, paper = [&] {
      TrainRunConfig config = paper_config(row.model + "-" + row.data + "-vcd");
      resolve(config);
      return config;
    }();
    EXPECT_EQ(best.train.model.hidden, paper.train.model.hidden);
    EXPECT_EQ(best.train.model.encoder_hidden, paper.train.model.encoder_hidden);
    EXPECT_EQ(best.train.model.latent, paper.train.model.latent);
    EXPECT_EQ(best.train.batch, paper.train.batch);
    EXPECT_EQ(best.train.refine.steps, &row - rows.data() < 4 ? paper.train.refine.steps : 25);
    EXPECT_EQ(best.data, paper.data);
    EXPECT_EQ(best.binarization, paper.binarization);
    EXPECT_EQ(best.iterations, paper_iterations);
    EXPECT_EQ(row.cell.seeds.size(), 5u);
    EXPECT_TRUE(row.cell.annealing);
  }
  EXPECT_EQ(rows.front().cell.id, "best-lmf-mnist");
  EXPECT_EQ(rows.back().cell.id, "best-vae-fashion-t25");
  EXPECT_EQ(rows.front().paper, -101.26);
  const BestRow brief = best_rows({.scale = Scale::brief}).front();  // its schedules are shortened alike
  const TrainRunConfig& full = rows.front().cell.config;
  EXPECT_EQ(brief.cell.config.objective.ramp.until,
            std::uint64_t{full.objective.ramp.until} * brief.cell.config.iterations / paper_iterations);
}

TEST(PaperCells, FullScaleIsThePapers) {
  const auto rows = table1_rows({.scale = Scale::full});
  ASSERT_EQ(rows.size(), 12u);
  std::set<std::string> ids;
  for (const Table1Row& row : rows) {
    TrainRunConfig paper = paper_config(row.model + "-" + row.data + "-" + row.objective);
    paper.threads = 1;
    resolve(paper);
    EXPECT_EQ(identity_of(row.cell.config), identity_of(paper));
    EXPECT_EQ(row.cell.config.iterations, 400000u);
    EXPECT_EQ(row.cell.seeds, (std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_EQ(row.cell.evaluation->samples, 20000);
    EXPECT_EQ(row.cell.evaluation->burn_in + row.cell.evaluation->kept, 600);
    EXPECT_FALSE(row.cell.evaluation->points);
    EXPECT_LT(row.paper, -90);
    ids.insert(row.cell.id);
  }
  EXPECT_EQ(ids.size(), 12u);
  EXPECT_EQ(rows[2].cell.id, "lmf-mnist-vcd");
  EXPECT_EQ(rows[2].paper, -101.26);
}

TEST(PaperCells, Figure2SharesTheCellsOfTable1ThatAreTheSame) {
  std::set<std::string> table1;
  for (const Table1Row& row : table1_rows({.scale = Scale::full})) table1.insert(row.cell.id);
  const auto points = fig2_points({.scale = Scale::full, .seeds = {4, 6}});
  EXPECT_EQ(points.size(), 16u);
  int shared = 0;
  for (const Fig2Point& point : points) {
    shared += table1.contains(point.cell.id);
    EXPECT_EQ(point.cell.seeds, (std::vector<std::uint64_t>{4, 6}));
    EXPECT_EQ(point.cell.config.train.refine.steps, point.steps.value_or(8));
    EXPECT_EQ(point.paper.has_value(), !point.steps || *point.steps == 8);
  }
  EXPECT_EQ(shared, 4);  // t = 8 and KL, of two data sets
  EXPECT_EQ(training_cell_id("vae-mnist-vcd", 8, 400000), "vae-mnist-vcd");
  EXPECT_EQ(training_cell_id("vae-mnist-vcd", 4, 3000), "vae-mnist-vcd-t4-3000");
}

TEST(PaperCells, ScalesGrowAndAreNamed) {
  const ScaleSettings smoke = settings_of(Scale::smoke), brief = settings_of(Scale::brief),
                      full = settings_of(Scale::full);
  EXPECT_LT(smoke.table1_iterations, brief.table1_iterations);
  EXPECT_LT(brief.table1_iterations, full.table1_iterations);
  EXPECT_LT(smoke.fig3_iterations, brief.fig3_iterations);
  EXPECT_EQ(full.fig3_iterations, 2000u);
  for (const Scale scale : {Scale::smoke, Scale::brief, Scale::full}) EXPECT_EQ(scale_named(name_of(scale)), scale);
  EXPECT_THROW(scale_named("huge"), InputError);
}

TrainingCell small_cell() {
  TrainRunConfig config = test::tiny_training(30);
  config.engine = EngineKind::cpu;
  resolve(config);
  EvaluationConfig evaluation;
  evaluation.samples = 40;
  evaluation.burn_in = evaluation.kept = 5;
  evaluation.points = 50;
  return {"small", config, {1, 2}, evaluation};
}

TEST(TrainingCells, GoOnBetweenTrainingAndEvaluation) {
  const test::TemporaryFolder folder;
  const TrainingCell cell = small_cell();
  EXPECT_EQ(state_of(folder.path(), cell).text(cell), "to do");
  TrainingCell half = cell;
  half.config.iterations = 15;
  half.evaluation.reset();
  run_cell(folder.path(), half, {});
  EXPECT_EQ(state_of(folder.path(), half).text(half), "done");
  EXPECT_EQ(state_of(folder.path(), cell).text(cell), "trained 50 %");
  TrainingCell trained = cell;
  trained.evaluation.reset();
  run_cell(folder.path(), trained, {});
  EXPECT_EQ(state_of(folder.path(), cell).text(cell), "to be evaluated");
  EXPECT_FALSE(test_results(folder.path(), cell, 1));
  run_cell(folder.path(), cell, {});
  EXPECT_TRUE(state_of(folder.path(), cell).done());
  const auto results = test_results(folder.path(), cell, 2);
  ASSERT_TRUE(results);
  EXPECT_LT(results->best.mean, 0);
  EXPECT_GT(results->best.se, 0);
  EXPECT_FALSE(results->ais);

  const test::TemporaryFolder whole;  // without a stop
  run_cell(whole.path(), cell, {});
  EXPECT_EQ(test_results(whole.path(), cell, 2)->best.mean, results->best.mean);

  TrainingCell more = cell;  // another seed is added, the others stay
  more.seeds.push_back(3);
  EXPECT_EQ(state_of(folder.path(), more).iterations_left, 30u);
  EXPECT_EQ(state_of(folder.path(), more).evaluations_left, 1);
  TrainingCell finer = cell;  // a different evaluation must be done again
  finer.evaluation->samples = 41;
  EXPECT_EQ(state_of(folder.path(), finer).evaluations_left, 2);
  TrainingCell whole_set = cell;  // part of the test data is not all of them
  whole_set.evaluation->points.reset();
  EXPECT_EQ(state_of(folder.path(), whole_set).evaluations_left, 2);
  TrainingCell shorter = cell;
  shorter.config.iterations = 29;
  EXPECT_THROW(state_of(folder.path(), shorter), InputError);
  TrainingCell other = cell;
  other.config.train.refine.steps = 3;
  EXPECT_THROW(state_of(folder.path(), other), InputError);
}

TEST(TrainingCells, ADamagedSummaryIsMadeAgain) {
  const test::TemporaryFolder folder;
  const TrainingCell cell = small_cell();
  run_cell(folder.path(), cell, {});
  const fs::path path = cell.folder(folder.path(), 2) / "summary.json";
  const std::string whole = read_file(path);
  const auto before = nlohmann::json::parse(whole);
  for (const std::string& text : {whole.substr(0, whole.size() / 2), std::string(), std::string("[1, 2]")}) {
    write_file(path, text);
    EXPECT_EQ(state_of(folder.path(), cell).text(cell), "damaged: 1");
    EXPECT_FALSE(test_results(folder.path(), cell, 2));
    EXPECT_TRUE(test_results(folder.path(), cell, 1));
    run_cell(folder.path(), cell, {});
    EXPECT_TRUE(state_of(folder.path(), cell).done());
    const auto after = nlohmann::json::parse(read_file(path));
    for (const char* key : {"elbo", "vcd", "iterations", "test_log_likelihood"}) EXPECT_EQ(after[key], before[key]);
  }
  write_file(cell.folder(folder.path(), 2) / "config.toml", "model = \"va");  // unreadable
  EXPECT_THROW(state_of(folder.path(), cell), InputError);
}

TEST(TrainingCells, AStopLeavesSomethingToGoOnFrom) {
  const test::TemporaryFolder folder;
  const TrainingCell cell = small_cell();
  const std::atomic<int> stop = SIGTERM;
  EXPECT_THROW(run_cell(folder.path(), cell, {.stop = &stop}), Stopped);
  TrainingCell trained = cell;
  trained.evaluation.reset();
  run_cell(folder.path(), trained, {});
  EXPECT_THROW(run_cell(folder.path(), cell, {.stop = &stop}), Stopped);
  EXPECT_EQ(state_of(folder.path(), cell).evaluations_left, 2);
  run_cell(folder.path(), cell, {});
  EXPECT_TRUE(state_of(folder.path(), cell).done());
}

TEST(TrainingCells, ReadAnnealedImportanceSamplingWhereItIs) {
  const test::TemporaryFolder folder;
  const TrainingCell cell = small_cell();
  run_cell(folder.path(), cell, {});
  const fs::path path = cell.folder(folder.path(), 1) / "summary.json";
  auto json = nlohmann::json::parse(read_file(path));
  json["test_log_likelihood"]["ais"] = {{"log_likelihood", -70.5}, {"se", 0.25}};
  write_file(path, json.dump());
  const auto results = test_results(folder.path(), cell, 1);
  ASSERT_TRUE(results && results->ais);
  EXPECT_EQ(results->ais->mean, -70.5);
  EXPECT_EQ(results->ais->se, 0.25);
}

TEST(Pace, EstimatesGrowWithTheWork) {
  Pace pace;
  TrainingCell cell = small_cell();
  const double each = pace.seconds_per_iteration(cell.config, 1);
  EXPECT_GT(each, 0);
  EXPECT_EQ(pace.seconds_per_iteration(cell.config, 3), 3 * each);  // one after the other
  const double evaluation = pace.evaluation_seconds(cell);
  EXPECT_GT(evaluation, 0);
  TrainingCell all = cell;
  all.evaluation->points.reset();
  EXPECT_NEAR(pace.evaluation_seconds(all) / evaluation, 200, 1e-9);  // 10,000 data instead of 50
  all.annealing = AnnealingConfig();
  EXPECT_GT(pace.evaluation_seconds(all) / evaluation, 200);
  EXPECT_EQ(pace.seconds(cell, {}), 0);
  const TrainingState nothing_done{60, 0, 2};
  EXPECT_NEAR(pace.seconds(cell, nothing_done), 3 * 0.5 + 60 * each + 2 * evaluation, 1e-9);
}

TEST(Timing, TakesTurnsAndCountsIterations) {
  const TrainRunConfig config = small_cell().config;
  const DataSet data = load_data({"synthetic"}).train;
  const auto timings = time_in_turns({config, config}, data, 80, nullptr);
  ASSERT_EQ(timings.size(), 2u);
  for (const Timing& timing : timings) {
    EXPECT_EQ(timing.iterations, 80u);
    EXPECT_EQ(timing.seconds.size(), 40u);
  }
  const std::atomic<int> stop = SIGTERM;
  EXPECT_THROW(time_in_turns({config}, data, 80, &stop), Stopped);
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(quantile({0, 1, 2, 3, 4}, 0.25), 1);
  EXPECT_EQ(quantile({0, 1}, 0.25), 0.25);
  EXPECT_EQ(quantile({7}, 0.75), 7);
}

TEST(Provenance, IsNotedOnce) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(read_provenance(folder.path()), "");
  note_provenance(folder.path(), "hone 1", "hone reproduce all");
  note_provenance(folder.path(), "hone 1", "hone reproduce");  // a prefix of another line is a different line
  note_provenance(folder.path(), "hone 1", "hone reproduce all");
  const std::string text = read_provenance(folder.path());
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
  EXPECT_NE(text.find("threads"), std::string::npos);
}

// The variance of the one-draw gradient at a fixed q: small t, enough draws to know the sign.
TEST(ClaimCells, GradientsOfAllEstimatorsAreMeasured) {
  const test::TemporaryFolder folder;
  for (const GradientPoint& point : gradient_points(Scale::smoke)) {
    if (point.steps != 1) continue;
    point.cell.run(RunFolder(folder.path() / point.q));
    const auto json = nlohmann::json::parse(read_file(folder.path() / point.q / "summary.json"));
    for (const char* estimator : {"without", "with", "large_t"}) {
      EXPECT_GT(json[estimator]["variance"], 0) << estimator;
      EXPECT_GT(json[estimator]["variance_se"], 0) << estimator;
      EXPECT_EQ(json[estimator]["mean"].size(), 4u) << estimator;
    }
    EXPECT_EQ(read_file(folder.path() / point.q / "config.toml"), point.cell.config);
  }
}

TEST(ClaimCells, HaveNamesOfTheirOwn) {
  std::set<std::string> ids;
  std::size_t count = 0;
  const auto add = [&](const auto& list) {
    for (const auto& item : list) ids.insert(item.cell.id);
    count += list.size();
  };
  add(alpha_runs(Scale::smoke, {}));
  add(li2017_runs(Scale::smoke, {7}));
  add(gradient_points(Scale::smoke));
  add(seconds_points(Scale::smoke, "synthetic", {}));
  EXPECT_EQ(ids.size(), count);
  const LocalBaselineCells local = local_baseline_cells({.scale = Scale::full}, "synthetic");
  EXPECT_EQ(local.from_start.config.train.shared_until, 0u);
  EXPECT_EQ(local.shared_first.config.train.shared_until, 3000u);
  EXPECT_NE(local.from_start.id, local.shared_first.id);
}

}  // namespace
}  // namespace hone
