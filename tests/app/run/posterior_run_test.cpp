// The settings of hone fit.
#include "app/run/posterior_run.hpp"

#include <gtest/gtest.h>

#include "hone/base/error.hpp"

namespace hone {
namespace {

Budget budget_of(const std::string& text) {
  PosteriorRunConfig config;
  config.budget = text;
  resolve(config);
  return config.check.fit.budget;
}

TEST(PosteriorRun, ABudgetIsOfGradientsOrOfSeconds) {
  EXPECT_EQ(budget_of("30s").seconds, 30);
  EXPECT_EQ(budget_of("30s").gradients, 0);
  EXPECT_EQ(budget_of("0.5s").seconds, 0.5);
  EXPECT_EQ(budget_of("2e6").gradients, 2'000'000);
  EXPECT_EQ(budget_of("2e6").seconds, 0);
  EXPECT_EQ(budget_of("0.5").gradients, 1);
  for (const char* bad : {"", "s", "30 s", "30m", "0", "0s", "-1s", "1e16", "nan", "infs"})
    EXPECT_THROW(budget_of(bad), InputError) << bad;
}

double error_of(Effort effort, std::optional<double> error) {
  PosteriorRunConfig config;
  config.effort = effort;
  config.error = error;
  resolve(config);
  return config.check.error;
}

TEST(PosteriorRun, AnEffortIsAnErrorUnlessOneIsGiven) {
  EXPECT_EQ(error_of(Effort::quick, {}), 0.1);
  EXPECT_EQ(error_of(Effort::usual, {}), 0.05);
  EXPECT_EQ(error_of(Effort::thorough, {}), 0.02);
  EXPECT_EQ(error_of(Effort::thorough, 0.3), 0.3);
}

TEST(PosteriorRun, TextsBecomeSettings) {
  PosteriorRunConfig config;
  Settings settings = posterior_run_settings(config);
  settings.set("target_accept", "0.95", "--target-accept");
  settings.set("effort", "quick", "--effort");
  EXPECT_EQ(config.check.coordinates, ChainCoordinates::adapted);
  settings.set("chain_coordinates", "affine", "--chain-coordinates");
  EXPECT_EQ(config.check.coordinates, ChainCoordinates::affine);
  EXPECT_THROW(settings.set("chain_coordinates", "straight", "--chain-coordinates"), InputError);
  EXPECT_EQ(config.check.fit.acceptance, 0.95);
  EXPECT_EQ(config.effort, Effort::quick);
  EXPECT_THROW(settings.set("target_accept", "1", "--target-accept"), InputError);
  EXPECT_THROW(settings.set("target_accept", "0.4", "--target-accept"), InputError);
  EXPECT_THROW(settings.set("effort", "much", "--effort"), InputError);
}

}  // namespace
}  // namespace hone
