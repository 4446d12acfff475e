#include "app/run/train_config.hpp"

#include <gtest/gtest.h>

#include "app/run/checkpoint.hpp"
#include "app/run/train_record.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tiny_training.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

TEST(TrainConfig, DefaultsHaveThePapersShapes) {
  TrainRunConfig vae;
  resolve(vae);
  EXPECT_EQ(*vae.latent, 10);
  EXPECT_EQ(*vae.hidden, (std::vector{200, 200}));
  EXPECT_EQ(*vae.step_size, 0.05);
  EXPECT_EQ(*vae.acceptance, 0.9);
  EXPECT_EQ(vae.iterations, 400000u);
  TrainRunConfig mf;
  mf.train.model.kind = ModelKind::logistic_mf;
  resolve(mf);
  EXPECT_EQ(*mf.latent, 50);
  EXPECT_TRUE(mf.hidden->empty());
  mf.hidden = {3};
  EXPECT_THROW(resolve(mf), InputError);
}

TEST(TrainConfig, ResolvingWritesWhatWasDerivedOrChosenIntoTheTraining) {
  TrainRunConfig config;
  config.train.model.kind = ModelKind::gaussian_mf;
  resolve(config);
  EXPECT_EQ(config.train.model.latent, 50);
  EXPECT_TRUE(config.train.model.hidden.empty());
  EXPECT_EQ(config.train.refine.step_size, 0.01);
  EXPECT_EQ(config.train.refine.acceptance, 0.9);
  config.latent = 4;
  config.step_size = 0.3;
  config.acceptance = 0.6;
  resolve(config);
  EXPECT_EQ(config.train.model.latent, 4);
  EXPECT_EQ(config.train.refine.step_size, 0.3);
  EXPECT_EQ(config.train.refine.acceptance, 0.6);
}

TEST(TrainConfig, TheLikelihoodIsAKeyOrPartOfTheModelsName) {
  const auto density_of = [](const std::string& text) {
    TrainRunConfig config;
    train_settings(config).read_text(text, "test");
    resolve(config);
    EXPECT_EQ(config.likelihood, config.train.model.density());
    return config.train.model.density();
  };
  const auto key_of = [&](const std::string& text) -> std::string {
    try {
      density_of(text);
    } catch (const KeyError& error) {
      return error.key();
    }
    return {};
  };
  EXPECT_EQ(density_of("model = 'vae'"), Density::bernoulli);
  EXPECT_EQ(density_of("model = 'mf'"), Density::bernoulli);
  EXPECT_EQ(density_of("model = 'logistic-mf'"), Density::bernoulli);
  EXPECT_EQ(density_of("model = 'gaussian-mf'"), Density::gaussian);
  EXPECT_EQ(density_of("model = 'poisson-mf'\nlikelihood = 'poisson'"), Density::poisson);
  EXPECT_EQ(density_of("model = 'mf'\nlikelihood = 'gaussian-learned'"), Density::gaussian_learned);
  EXPECT_EQ(density_of("likelihood = 'categorical'\ncategories = 4"), Density::categorical);
  EXPECT_EQ(density_of("likelihood = 'negative-binomial'"), Density::negative_binomial);
  EXPECT_EQ(key_of("model = 'gaussian-mf'\nlikelihood = 'bernoulli'"), "likelihood");
  EXPECT_EQ(key_of("likelihood = 'categorical'"), "categories");
  EXPECT_EQ(key_of("likelihood = 'poisson'\ncategories = 4"), "categories");
  EXPECT_EQ(key_of("likelihood = 'categorical'\ncategories = 4\nprecision = 'bf16-trajectory'\nengine = 'cpu'"),
            "precision");
}

TEST(TrainConfig, TheFamilyAndItsRankReachTheTraining) {
  const auto resolved = [](const std::string& text) {
    TrainRunConfig config;
    train_settings(config).read_text(text, "test");
    config.engine = config.engine == EngineKind::automatic ? EngineKind::cpu : config.engine;
    resolve(config);
    return config;
  };
  const auto rank_of = [&](const std::string& text) {
    return dynamic_cast<const LowRankGaussian&>(*resolved(text).train.family).rank();
  };
  const auto key_of = [&](const std::string& text) -> std::string {
    try {
      resolved(text);
    } catch (const KeyError& error) {
      return error.key();
    }
    return "none";
  };
  EXPECT_EQ(resolved("").train.family->name(), DiagonalGaussian().name());
  EXPECT_EQ(rank_of("family = 'low-rank'"), 2);
  EXPECT_EQ(rank_of("family = 'low-rank'\nrank = 4"), 4);
  EXPECT_EQ(rank_of("family = 'low-rank'\nlatent = 1"), 1);
  EXPECT_EQ(key_of("rank = 2"), "rank");
  EXPECT_EQ(key_of("family = 'low-rank'\nrank = 11"), "rank");
  EXPECT_EQ(key_of("family = 'low-rank'\nengine = 'cuda'"), "family");

  // Checkpoints of earlier versions do not name their family: it is the diagonal one.
  const auto now = identity_of(resolved("init = 'paper'"));
  auto before = now;
  before.erase("family");
  before.erase("rank");
  EXPECT_NO_THROW(check_identity("run", before, now));
  EXPECT_THROW(check_identity("run", before, identity_of(resolved("init = 'paper'\nfamily = 'low-rank'"))), KeyError);
}

TEST(TrainConfig, CheckpointsOfEarlierVersionsHaveTheLikelihoodOfTheirModel) {
  for (const ModelKind kind : {ModelKind::vae, ModelKind::gaussian_mf, ModelKind::poisson_mf}) {
    TrainRunConfig config = paper_run_config();
    config.train.model.kind = kind;
    resolve(config);
    auto before = identity_of(config);
    before.erase("likelihood");
    before.erase("categories");
    EXPECT_NO_THROW(check_identity("run", before, identity_of(config)));
    if (kind != ModelKind::vae) continue;
    config.likelihood = Density::poisson;
    resolve(config);
    EXPECT_THROW(check_identity("run", before, identity_of(config)), KeyError);
  }
}

TEST(TrainConfig, AKeyOfAFileReachesTheTraining) {
  TrainRunConfig config;
  train_settings(config).read_text("local_from = 7\nsteps = 5\nseed = 9\nrate_model = 0.25\n", "test");
  EXPECT_EQ(config.train.shared_until, 7u);
  EXPECT_EQ(config.train.refine.steps, 5);
  EXPECT_EQ(config.train.seed, 9u);
  EXPECT_EQ(config.train.rate_model, 0.25);
}

TEST(TrainConfig, DefaultsAreTheLibrarys) {
  TrainRunConfig config;
  resolve(config);
  const ObjectiveTerms own = config.train.objective->terms().value(),
                       library = TrainConfig().objective->terms().value();
  EXPECT_EQ(own.ramp.from, library.ramp.from);
  EXPECT_EQ(own.ramp.until, library.ramp.until);
  EXPECT_EQ(own.score_bound, library.score_bound);
  EXPECT_EQ(config.train.model.initial, InitialWeights::scaled);
  EXPECT_EQ(config.train.optimizer, OptimizerKind::adam);
}

TEST(TrainConfig, ThePapersConfigurationsAreThePapersSettings) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(HONE_SOURCE_DIR) / "configs/paper")) {
    TrainRunConfig read, expected = paper_run_config();
    train_settings(read).read_file(entry.path());
    expected.train.model.kind = read.train.model.kind;
    expected.data = read.data;
    expected.binarization = read.binarization;
    expected.objective.kind = read.objective.kind;
    resolve(read);
    resolve(expected);
    EXPECT_EQ(train_settings(read).to_toml(), train_settings(expected).to_toml()) << entry.path();
    const std::string name = entry.path().stem();
    EXPECT_EQ(name.starts_with("vae"), read.train.model.kind == ModelKind::vae);
    EXPECT_EQ(name.find("fashion") != std::string::npos, read.data == "fashion-mnist");
    EXPECT_TRUE(name.ends_with(train_settings(read).text("objective")));
    ++files;
  }
  EXPECT_EQ(files, 12);
}

TEST(TrainConfig, SettingsThatWouldDoNothingAreRefused) {
  const auto refused = [](auto change) {
    TrainRunConfig config = test::tiny_training(40);
    change(config);
    try {
      resolve(config);
    } catch (const KeyError& error) {
      return error.key();
    }
    return std::string();
  };
  using Config = TrainRunConfig;
  EXPECT_EQ(refused([](Config&) {}), "");
  EXPECT_EQ(refused([](Config& c) { c.objective.alpha = 0.5; }), "");
  EXPECT_EQ(refused([](Config& c) {
              c.objective.kind = ObjectiveKind::kl;
              c.objective.alpha = 0.5;
            }),
            "alpha");
  EXPECT_EQ(refused([](Config& c) {
              c.objective.kind = ObjectiveKind::hoffman;
              c.objective.estimator = Estimator::large_t;
            }),
            "estimator");
  EXPECT_EQ(refused([](Config& c) {
              c.objective.kind = ObjectiveKind::li2017;
              c.objective.first_term = FirstTerm::score;
            }),
            "first_term");
  EXPECT_EQ(refused([](Config& c) { c.kernel = {KernelKind::mala, 3, 0}; }), "leapfrog");
  EXPECT_EQ(refused([](Config& c) {
              c.objective.kind = ObjectiveKind::kl;
              c.objective.baseline_decay = 0.5;
            }),
            "baseline_decay");
  EXPECT_EQ(refused([](Config& c) {
              c.objective.kind = ObjectiveKind::hoffman;
              c.objective.score_bound = 7;
            }),
            "score_bound");
  EXPECT_EQ(refused([](Config& c) {
              c.objective.kind = ObjectiveKind::kl;
              c.objective.ramp.until = 70;
            }),
            "schedule.alpha_until");
  EXPECT_EQ(refused([](Config& c) { c.objective.ramp = {.from = 80, .until = 70}; }), "schedule.alpha_from");
  EXPECT_EQ(refused([](Config& c) {
              c.objective.estimator = Estimator::large_t;
              c.objective.score_bound = 7;
            }),
            "score_bound");
}

// A run that an earlier version began had the paper's start and no bound; its checkpoint does not say so.
TEST(TrainConfig, AnEarlierVersionsCheckpointFitsThePapersSettings) {
  TrainRunConfig config = paper_run_config();
  resolve(config);
  const auto now = identity_of(config);
  auto before = now;
  for (const char* key : {"init", "score_bound", "schedule.alpha_from", "schedule.alpha_until", "schedule.warmup"})
    before.erase(key);
  EXPECT_NO_THROW(check_identity("run", before, now));
  TrainRunConfig other;
  resolve(other);
  EXPECT_THROW(check_identity("run", before, identity_of(other)), KeyError);

  const test::TemporaryFolder folder;  // and its config.toml has no such keys either
  write_file(folder.path() / "config.toml", "model = \"vae\"\nengine = \"cpu\"\n");
  const TrainRunConfig read = read_train_config(folder.path() / "config.toml", 1);
  EXPECT_EQ(read.train.model.initial, InitialWeights::paper);
  EXPECT_EQ(read.objective.score_bound, no_bound);
}

}  // namespace
}  // namespace hone
