#include "app/run/train_health.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "app/run/train_config.hpp"
#include "hone/base/file.hpp"
#include "hone/latent/data_set.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

const Estimate none{std::nan(""), std::nan("")};

TEST(TrainHealth, AGoodTrainingHasNothingToSay) {
  TrainHealth health;
  health.add(1000, -400, {300, 1});
  health.add(2000, -150, {100, 1});
  health.add(3000, -180, {60, 1});  // the VCD takes over
  health.add(4000, -170, none);
  EXPECT_FALSE(health.trouble());
  EXPECT_FALSE(health.worth_a_word());
}

TEST(TrainHealth, SaysWhatIsWrongAndSinceWhen) {
  TrainHealth health;
  health.add(1000, -400, {20, 1});
  health.add(2000, -150, {20, 1});
  health.add(3000, -288, {30, 1});
  ASSERT_TRUE(health.trouble());
  EXPECT_EQ(health.trouble()->kind, Trouble::Kind::elbo_fell);
  EXPECT_EQ(health.trouble()->since, 3000u);
  EXPECT_EQ(health.trouble()->text(),
            "the ELBO has fallen since iteration 3000: it is -288 now and was -150 at its best");
  EXPECT_FALSE(health.worth_a_word());
  health.add(4000, -290, {1e6, 1});
  health.add(5000, -290, {1e6, 1});
  EXPECT_EQ(health.trouble()->kind, Trouble::Kind::q_lost);
  EXPECT_EQ(health.trouble()->since, 3000u);
  EXPECT_TRUE(health.worth_a_word());
  health.add(6000, -290, {1e6, 1});
  EXPECT_FALSE(health.worth_a_word()) << "it was said";
  health.add(7000, -149, {20, 1});
  EXPECT_FALSE(health.trouble()) << "it recovered";
}

TEST(TrainHealth, AVcdThatGrowsIsTrouble) {
  TrainHealth health;
  health.add(1000, -200, {0.1, 1});  // hardly trained
  health.add(2000, -160, {40, 1});
  health.add(3000, -150, {290, 1});
  EXPECT_FALSE(health.trouble());
  health.add(4000, -160, {500, 1});
  ASSERT_TRUE(health.trouble());
  EXPECT_EQ(health.trouble()->text(),
            "the VCD has grown since iteration 4000: it is 500 nats now and was 0.1 at its least (the ELBO is -160)");
  health.add(5000, -160, none);
  EXPECT_FALSE(health.trouble());
  TrainHealth falling;
  falling.add(1000, -150, {400, 1});
  EXPECT_FALSE(falling.trouble()) << "it was never less";
}

TEST(TrainHealth, AnUncertainVcdIsNoAlarm) {
  TrainHealth health;
  health.add(1000, -180, {20, 1});
  health.add(2000, -166, {24578, 16513});  // a few wild chains
  EXPECT_FALSE(health.trouble());
  health.add(3000, -166, {24578, 1000});
  ASSERT_TRUE(health.trouble());
  EXPECT_EQ(health.trouble()->kind, Trouble::Kind::q_lost);
}

TEST(TrainHealth, ALongTroubleEndsWhereTheElboIsBack) {
  TrainHealth health;
  health.add(500, -177, {13, 1});
  for (const std::uint32_t iteration : {1000, 1500, 2000}) health.add(iteration, -264, {100, 1});
  health.add(2500, -211, {90, 1});  // above the limit, but 34 nats below what it was
  ASSERT_TRUE(health.trouble());
  EXPECT_EQ(health.trouble()->text(),
            "the ELBO has fallen since iteration 1000: it is -211 now and was -177 at its best");
  health.add(3000, -184, {30, 1});
  EXPECT_FALSE(health.trouble());
  TrainHealth brief;
  brief.add(500, -177, {13, 1});
  brief.add(1000, -264, {100, 1});
  brief.add(1500, -211, {90, 1});
  EXPECT_FALSE(brief.trouble());
}

TEST(TrainHealth, ASmallElboMayMoveByNats) {
  TrainHealth health;
  health.add(1000, 5, {2, 1});
  health.add(2000, -9, {2, 1});
  health.add(3000, -3, {18, 1});  // real numbers: the ELBO passes through 0
  EXPECT_FALSE(health.trouble());
}

TEST(TrainHealth, ReadsWhatARunSaidBefore) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "metrics.csv",
             "iteration,seconds,elbo,elbo_se,vcd,vcd_se,acceptance,step_size,rejected_nonfinite\n"
             "10,0.5,-100,1,20,1,0.9,0.1,0\n20,0.6,-300,1,,,,,0\n");
  TrainHealth health;
  health.read(folder.path() / "metrics.csv");
  ASSERT_TRUE(health.trouble());
  EXPECT_EQ(health.trouble()->since, 20u);
  EXPECT_TRUE(std::isnan(health.trouble()->vcd));
}

TEST(TrainHealth, WideDataAreToBeDivided) {
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) values.push_back(1e5 * (i / 4 % 2 ? 1 : -1) + 7);
  const DataSet wide(values, ImageShape{1, 4});
  for (double& x : values) x = 1e-5 * (x - 7);
  const DataSet narrow(values, ImageShape{1, 4});
  TrainRunConfig config;
  config.train.model.likelihood = Density::gaussian;
  EXPECT_EQ(too_wide(config, wide), "the data by about 1e+05, their standard deviation");
  EXPECT_EQ(too_wide(config, narrow), "");
  EXPECT_EQ(advice(config, too_wide(config, wide))
                .find("What may help: dividing the data by about 1e+05, their standard deviation, "),
            0u);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += 2000 * static_cast<double>(i % 4);
  EXPECT_EQ(too_wide(config, DataSet(values, ImageShape{1, 4})), "");  // only their means are far apart
  for (std::size_t i = 1; i < values.size(); i += 4) values[i] *= 500;
  EXPECT_EQ(too_wide(config, DataSet(values, ImageShape{1, 4})),
            "each column by its standard deviation (they go from 1 to 5e+02)");
  config.train.model.likelihood = Density::poisson;
  EXPECT_EQ(too_wide(config, wide), "");
}

TEST(TrainHealth, AdviceFitsTheConfiguration) {
  EXPECT_NE(advice(paper_run_config()).find("init = \"scaled\", score_bound = 3"), std::string::npos);
  EXPECT_EQ(advice(TrainRunConfig()).find("init"), std::string::npos);
  TrainRunConfig large_t = paper_run_config();
  large_t.objective.estimator = Estimator::large_t;
  EXPECT_EQ(advice(large_t).find("score_bound"), std::string::npos);
  TrainRunConfig kl;
  kl.objective.kind = ObjectiveKind::kl;
  EXPECT_EQ(advice(kl), "What may help: smaller rates (rate_mean, rate_scale, rate_model)");
}

TEST(TrainHealth, NumbersMayWantFewerLatentDimensions) {
  TrainRunConfig config;
  config.train.model.latent = 10;
  EXPECT_EQ(advice(config).find("latent"), std::string::npos);
  config.train.model.likelihood = Density::gaussian_learned;
  EXPECT_EQ(advice(config).find("What may help: fewer latent dimensions (latent), a later start of the VCD"), 0u);
  config.objective.kind = ObjectiveKind::hoffman;
  EXPECT_NE(advice(config).find("fewer latent"), std::string::npos);
  config.objective.kind = ObjectiveKind::kl;
  EXPECT_EQ(advice(config).find("fewer latent"), std::string::npos);
  config.objective.kind = ObjectiveKind::vcd;
  config.train.model.latent = 1;
  EXPECT_EQ(advice(config).find("fewer latent"), std::string::npos);
}

}  // namespace
}  // namespace hone
