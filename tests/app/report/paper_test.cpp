// Tables and verdicts from planted results.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/cli/experiments.hpp"
#include "app/report/claims.hpp"
#include "app/report/fig3.hpp"
#include "hone/base/file.hpp"
#include "hone/engine/engines.hpp"
#include "hone/target/toys.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void plant(const fs::path& folder, const json& summary) {
  fs::create_directories(folder);
  std::ofstream(folder / "summary.json") << summary.dump();
}

void plant(const fs::path& experiment, const Cell& cell, const json& summary) {
  plant(experiment / "cells" / cell.id, summary);
  std::ofstream(experiment / "cells" / cell.id / "config.toml") << cell.config;
}

void plant(const ReportContext& context, const TrainingCell& cell, std::uint64_t seed, double value) {
  plant(cell.folder(context.folder, seed), {{"iterations", cell.config.iterations},
                                            {"finished", true},
                                            {"binarization", "made as bits"},
                                            {"engine", "cpu"},
                                            {"seconds", 1},
                                            {"runs_side_by_side", 1},
                                            {"test_log_likelihood",
                                             {{"value", value},
                                              {"se", 0.5},
                                              {"mixture", value - 1},
                                              {"mixture_se", 0.5},
                                              {"points", cell.evaluation->points.value_or(10000)},
                                              {"samples", cell.evaluation->samples},
                                              {"iteration", cell.config.iterations}}}});
}

TEST(Table1Report, HasThePapersFigureOursAndTheDifference) {
  const test::TemporaryFolder folder;
  const ReportContext context{folder.path(), {{"fashion-mnist", "not found"}}, "full"};
  const auto rows = table1_rows({.scale = Scale::full});
  plant(context, rows[2].cell, 1, -101);
  plant(context, rows[2].cell, 2, -103);
  plant(context, rows[2].cell, 3, -102);
  plant(context, rows[0].cell, 1, -110);
  auto one = json::parse(read_file(rows[0].cell.folder(folder.path(), 1) / "summary.json"));
  one["test_log_likelihood"]["ais"] = {{"log_likelihood", -109.125}, {"se", 0.1}};
  plant(rows[0].cell.folder(folder.path(), 1), one);
  const std::string text = report_table1(rows, context);
  EXPECT_TRUE(
      contains(text, "| lmf | mnist | vcd | -101.26 | -102.00 ± 1.00 | -0.74 | -103.00 ± 1.00 | — | 0.50 | 3 |"))
      << text;
  EXPECT_TRUE(contains(text, "| lmf | mnist | kl | -111.20 | -110.00 | +1.20 | -111.00 | -109.12 | 0.50 | 1 of 3 |"))
      << text;
  EXPECT_TRUE(contains(text, "| lmf | mnist | hoffman | -103.61 | not done |")) << text;
  EXPECT_TRUE(contains(text, "| vae | fashion | vcd | -117.65 | no data |")) << text;
  EXPECT_TRUE(contains(text, "hone data get fashion-mnist"));
  EXPECT_TRUE(contains(read_file(folder.path() / "table1.md"), "Computed by"));
  const std::string csv = read_file(folder.path() / "table1.csv");
  EXPECT_TRUE(
      contains(csv, "lmf,mnist,vcd,-101.26,2,400000,-103.0000,0.5000,-104.0000,0.5000,,,made as bits,cpu,1.000,1\n"))
      << csv;
  EXPECT_TRUE(contains(csv, ",-109.1250,0.1000,")) << csv;
}

TEST(Table1Report, LeavesOutWhatIsDamagedAndMarksWhatWentWrong) {
  const test::TemporaryFolder folder;
  const ReportContext context{folder.path(), {}, "full"};
  const auto rows = table1_rows({.scale = Scale::full});
  for (const int row : {0, 2})
    for (const std::uint64_t seed : {1, 2, 3}) plant(context, rows[row].cell, seed, -101);
  write_file(rows[0].cell.folder(folder.path(), 1) / "config.toml", "model = ");
  write_file(rows[2].cell.folder(folder.path(), 2) / "summary.json", "{\"iterations\": 4000");
  auto wrong = json::parse(read_file(rows[2].cell.folder(folder.path(), 3) / "summary.json"));
  wrong["trouble"] = {{"since", 2000}, {"what", "the ELBO has fallen"}, {"advice", ""}};
  plant(rows[2].cell.folder(folder.path(), 3), wrong);
  const std::string text = report_table1(rows, context);
  EXPECT_TRUE(contains(text, "| 2 of 3, cannot be read |")) << text;
  EXPECT_TRUE(contains(text, "| 2 of 3, 1 went wrong |")) << text;
}

TEST(Fig2Report, ComparesWithKlAndDrawsWhatIsThere) {
  const test::TemporaryFolder folder;
  const ReportContext context{folder.path(), {}, "full"};
  const auto points = fig2_points({.scale = Scale::full});
  plant(context, points[0].cell, 1, -98);    // kl
  plant(context, points[1].cell, 1, -97);    // t = 2
  plant(context, points[7].cell, 1, -95.5);  // t = 25
  const std::string text = report_fig2(points, context);
  EXPECT_TRUE(contains(text, "| mnist | kl | -98.46 | -98.00 | +0.46 |")) << text;
  EXPECT_TRUE(contains(text, "from t = 2 to t = 25 the log-likelihood changes by +1.50")) << text;
  EXPECT_TRUE(contains(text, "t = 2 lies +1.00 from KL")) << text;
  EXPECT_TRUE(contains(read_file(folder.path() / "figures/fig2.csv"), "mnist,25,1,400000,-95.5000"));
  EXPECT_TRUE(fs::exists(folder.path() / "figures/fig2.gp"));
}

TEST(Fig3Report, FitsAStraightLine) {
  const double x[] = {2, 4, 8}, straight[] = {7, 11, 19}, bent[] = {7, 11, 25};
  const Line line = fit_line(x, straight);
  EXPECT_NEAR(line.intercept, 3, 1e-12);
  EXPECT_NEAR(line.slope, 2, 1e-12);
  EXPECT_NEAR(line.r_squared, 1, 1e-12);
  EXPECT_NEAR(line.largest_deviation, 0, 1e-12);
  EXPECT_LT(fit_line(x, bent).r_squared, 1);
  EXPECT_GT(fit_line(x, bent).largest_deviation, 0.05);

  const test::TemporaryFolder folder;
  const ReportContext context{folder.path(), {{"mnist", "not found"}}, "short"};
  const auto points = fig3_points(Scale::brief, {});
  for (const Fig3Point& point : points)
    if (point.data == "fashion") {
      if (point.steps == 8) {
        const std::string text = report_fig3(points, context);
        EXPECT_TRUE(contains(text, "| fashion | " + point.engine + " | too few points | — | — |"));
        EXPECT_EQ(contains(text, "| fashion | cuda | 25 | not done"), cuda_support().missing.empty());
      }
      const double seconds = 0.003 + 0.002 * point.steps;
      plant(folder.path(), point.cell,
            {{"seconds_per_iteration", seconds},
             {"lower_quartile", seconds},
             {"upper_quartile", seconds},
             {"iterations", 200}});
    }
  const std::string text = report_fig3(points, context);
  EXPECT_TRUE(contains(text, "| fashion | cpu | 3 + 2 t | 1.0000 | 0.0 % |")) << text;
  EXPECT_TRUE(contains(text, "| mnist | cpu | 25 | no data | — |")) << text;
  EXPECT_TRUE(contains(text, "| fashion | cuda | 3 + 2 t | 1.0000 | 0.0 % |")) << text;  // perhaps from another machine
  EXPECT_FALSE(contains(text, "No device")) << text;

  plant(folder.path(), points.back().cell, {{"milliseconds", 3}});  // from another version
  try {
    report_fig3(points, context);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_TRUE(contains(error.what(), points.back().cell.id + "/summary.json: is not what this version writes"))
        << error.what();
  }
}

TEST(Claims, DivergencesFromTheGaussianToyAreThoseOfQuadrature) {
  const auto target = make_toy(Toy::gaussian);
  const double mean[] = {0.3, -0.2}, sd[] = {0.5, 0.7};
  double of_q = 0, of_p = 0;
  constexpr int nodes = 601;
  constexpr double side = 6, width = 2 * side / (nodes - 1);
  Matrix<double> z(2, 1);
  std::vector<double> value(1);
  for (int i = 0; i < nodes; ++i)
    for (int j = 0; j < nodes; ++j) {
      z(0, 0) = -side + i * width;
      z(1, 0) = -side + j * width;
      target->evaluate(z, Want::value, value, {});
      double log_q = -std::log(2 * M_PI * sd[0] * sd[1]);
      for (int k = 0; k < 2; ++k) log_q -= 0.5 * std::pow((z(k, 0) - mean[k]) / sd[k], 2);
      of_q += std::exp(log_q) * (log_q - value[0]) * width * width;
      of_p += std::exp(value[0]) * (value[0] - log_q) * width * width;
    }
  const ToyDivergences exact = gaussian_toy_divergences(mean, sd);
  EXPECT_NEAR(exact.of_q, of_q, 1e-6);
  EXPECT_NEAR(exact.of_p, of_p, 1e-6);
}

TEST(Claims, AMarginIsDecidedByStudentsT) {
  const auto judged = [](std::initializer_list<double> values) {
    Moments moments;
    for (const double value : values) moments.add(value);
    return judge_above(moments, 0);
  };
  EXPECT_EQ(judged({}), ClaimVerdict::undecided);
  EXPECT_EQ(judged({5}), ClaimVerdict::undecided);
  EXPECT_EQ(judged({1, 1.2}), ClaimVerdict::undecided);  // 11 standard errors, but only two values
  EXPECT_EQ(judged({1, 1.2, 1.1, 0.9, 1}), ClaimVerdict::holds);
  EXPECT_EQ(judged({-1, -1.2, -1.1, -0.9, -1}), ClaimVerdict::does_not_hold);
  EXPECT_EQ(judged({-1, 1, 0.5, -0.4, 0.1}), ClaimVerdict::undecided);
  Moments near_one;
  for (const double value : {1.0, 1.2, 1.1, 0.9, 1.0}) near_one.add(value);
  EXPECT_EQ(judge_above(near_one, 1), ClaimVerdict::undecided);
  EXPECT_EQ(judge_above(near_one, 2), ClaimVerdict::does_not_hold);
}

// Plants results for all cells of the claims; `better` scales the evidence for each claim.
class PlantedClaims : public testing::Test {
 protected:
  const TrainingChoice choice_{.scale = Scale::brief, .seeds = {1, 2, 3, 4, 5, 6, 7, 8}, .engine = EngineKind::cpu};
  const ClaimCells cells_{alpha_runs(choice_.scale, choice_.seeds), li2017_runs(choice_.scale, choice_.seeds),
                          gradient_points(choice_.scale), local_baseline_cells(choice_, "synthetic"),
                          seconds_points(choice_.scale, "synthetic", {})};
  test::TemporaryFolder folder_;
  const ReportContext context_{folder_.path(), {}, "short"};

  static json toy(double sd) {
    ToyResult result;
    result.mean = {0, 0};
    result.sd = {sd, sd};
    return json::parse(result.to_json());
  }
  void plant_all(bool good) {
    for (const ToyRun& run : cells_.alpha) {  // KL(q ‖ p) is least at sd 0.312
      const bool poor = (run.alpha == 1) == good;
      plant(folder_.path(), run.cell, toy(0.312 + (poor ? 0.3 : 0.05) + 0.002 * static_cast<double>(run.seed)));
    }
    for (const ToyRun& run : cells_.li2017) {
      const bool spread = (run.variant == "li2017" && run.steps == 1) && good;
      plant(folder_.path(), run.cell,
            toy(0.6 * std::exp((spread ? 0.5 : 0.01) * (static_cast<double>(run.seed) - 4.5))));
    }
    for (const GradientPoint& point : cells_.gradient) {
      const double base = good ? 100.0 / point.steps : 100.0 * point.steps;
      const auto results = [&](double factor) {
        return json{{"variance", base * factor}, {"variance_se", base * 0.001}, {"mean", {1, 2}}};
      };
      plant(folder_.path(), point.cell,
            {{"without", results(3)}, {"with", results(good ? 2 : 4)}, {"large_t", results(1)}});
    }
    for (const std::uint64_t seed : choice_.seeds)
      for (const TrainingCell* cell : {&cells_.local.from_start, &cells_.local.shared_first}) {
        const double ahead = cell == &cells_.local.shared_first && good ? 3 : 0;
        plant(
            cell->folder(folder_.path(), seed),
            {{"finished", true}, {"elbo", {{"mean", -100 + ahead + 0.01 * static_cast<double>(seed % 3)}, {"se", 1}}}});
      }
    for (const SecondsPoint& point : cells_.seconds) {
      const double fast = good ? 0.9 : 1.1;
      plant(folder_.path(), point.cell, {{"vcd", {fast, fast * 1.01, fast, fast}}, {"hoffman", {1, 1, 1.01, 1}}});
    }
  }
};

TEST_F(PlantedClaims, Hold) {
  plant_all(true);
  const std::string text = report_claims(cells_, context_);
  for (const char* claim : {"α against slow mixing", "li2017 at small t", "The gradient's variance",
                            "Local control variates from the start", "Seconds of VCD and of Hoffman's method"})
    EXPECT_TRUE(contains(text, std::string("| ") + claim + " | holds |")) << text;
}

TEST_F(PlantedClaims, DoNotHold) {
  plant_all(false);
  const std::string text = report_claims(cells_, context_);
  EXPECT_FALSE(contains(text, "| holds |")) << text;
  for (const char* claim : {"α against slow mixing", "The gradient's variance", "Local control variates from the start",
                            "Seconds of VCD and of Hoffman's method"})
    EXPECT_TRUE(contains(text, std::string("| ") + claim + " | does not hold |")) << text;
}

TEST_F(PlantedClaims, AreNotJudgedFromPartOfTheCellsOrASmokeTest) {
  const std::string nothing = report_claims(cells_, context_);
  EXPECT_TRUE(contains(nothing, "| α against slow mixing | not all cells are done |")) << nothing;
  EXPECT_FALSE(contains(nothing, "nan")) << nothing;
  plant_all(true);
  const std::string smoke = report_claims(cells_, {folder_.path(), {}, "smoke"});
  EXPECT_TRUE(contains(smoke, "| α against slow mixing | not judged at this scale |")) << smoke;
  plant(folder_.path(), cells_.alpha.front().cell, {{"failure", "not finite"}});
  EXPECT_TRUE(contains(report_claims(cells_, context_), "| 1 |"));
}

TEST(Experiments, CellsCanBeChosenAndDataCanBeMissing) {
  ExperimentOptions options;
  options.choice.scale = Scale::smoke;
  Experiment table1 = make_experiment("table1", options);
  EXPECT_EQ(table1.trainings.size(), 12u);
  keep_matching(table1, "vae-mnist-*");
  EXPECT_EQ(table1.trainings.size(), 3u);
  options.missing = {{"mnist", "not found"}};
  EXPECT_EQ(make_experiment("table1", options).trainings.size(), 6u);
  EXPECT_EQ(make_experiment("fig2", options).trainings.size(), 8u);
  for (const Cell& cell : make_experiment("fig3", options).timed) EXPECT_FALSE(contains(cell.id, "-mnist-")) << cell.id;
  EXPECT_EQ(make_experiment("claims", options).trainings.size(), 2u);
  EXPECT_THROW(make_experiment("fig4", options), InputError);
}

}  // namespace
}  // namespace hone
