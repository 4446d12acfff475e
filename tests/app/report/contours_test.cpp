#include "app/report/contours.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/temporary.hpp"

namespace hone {
namespace {

// For a standard normal in two dimensions the region that holds a share s is r² ≤ −2 log(1 − s).
TEST(DensityLevel, EnclosesTheShareOfTheMass) {
  std::vector<double> density;
  for (double x = -6; x <= 6; x += 0.02)
    for (double y = -6; y <= 6; y += 0.02) density.push_back(std::exp(-0.5 * (x * x + y * y)));
  for (const double share : {0.5, 0.8, 0.95}) EXPECT_NEAR(density_level(density, share), 1 - share, 2e-3);
}

TEST(DrawContours, LeavesDataAndScriptBesideThePicture) {
  const test::TemporaryFolder folder;
  ToyConfig config;
  config.iterations = 200;
  const RunFolder run(folder.path() / "run");
  run_toy(config, &run, nullptr);
  const bool drawn = draw_contours("contours", {{"contours", "a title", {run.path()}}}, run.figures());
  EXPECT_TRUE(std::filesystem::exists(run.figures() / "contours.csv"));
  EXPECT_TRUE(std::filesystem::exists(run.figures() / "contours.gp"));
  if (!drawn) GTEST_SKIP() << "gnuplot is not installed";
  EXPECT_GT(std::filesystem::file_size(run.figures() / "contours.svg"), 5000u);
  EXPECT_GT(std::filesystem::file_size(run.figures() / "contours.png"), 5000u);
  EXPECT_FALSE(std::filesystem::exists(run.figures() / "contours.log"));
}

TEST(DrawContours, NamesASummaryThatDoesNotFit) {
  const test::TemporaryFolder folder;
  ToyConfig config;
  config.iterations = 200;
  const RunFolder run(folder.path() / "run");
  run_toy(config, &run, nullptr);
  write_file(run.path() / "summary.json", "{}");
  EXPECT_THROW(draw_contours("contours", {{"contours", "", {run.path()}}}, run.figures()), InputError);
}

}  // namespace
}  // namespace hone
