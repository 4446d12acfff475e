// Families of q(z | x) and optimizers that a caller brings, and the low-rank Gaussian, which the library has.

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/engine/frozen.hpp"
#include "hone/optim/update.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/methods.hpp"
#include "tests/support/thread_ranks.hpp"

namespace hone::test {
namespace {

constexpr int pixels = 20, points = 130, latent = 3;

DataSet made_up_data() {
  std::vector<double> values(static_cast<std::size_t>(points) * pixels);
  PhiloxSource(2).uniforms({Purpose::synthesize}, values);
  for (double& x : values) x = x < 0.4;
  return binary_data(values, pixels);
}

TrainConfig small() {
  TrainConfig config;
  config.model = {.latent = latent, .hidden = {7, 5}, .encoder_hidden = {6}};
  config.shared_until = 5;
  config.refine.steps = 2;
  config.batch = 15;
  return config;
}

// Independent Laplace coordinates from normal noise: z = mean + scale · s(noise). No closed entropy is declared.
class Laplace final : public AmortizedFamily {
 public:
  std::string name() const override { return "laplace"; }
  AmortizedShape shape(int d) const override { return {d, d, d, d}; }
  static double of(double noise) {
    const double tail = -std::log(std::erfc(std::abs(noise) * std::sqrt(0.5)));  // exponential
    return noise < 0 ? -tail : tail;
  }
  void draw(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<double> z) const override {
    for (int c = 0; c < q.count(); ++c)
      for (int i = 0; i < z.rows(); ++i) z(i, c) = q.location(i, c) + q.scale(i, c) * of(noise(i, c));
  }
  void log_density(const AmortizedParameters& q, MatrixView<const double> z, Want want, std::span<double> value,
                   MatrixView<double> gradient) const override {
    for (int c = 0; c < q.count(); ++c) {
      if (wants_value(want)) value[c] = 0;
      for (int i = 0; i < z.rows(); ++i) {
        const double rest = z(i, c) - q.location(i, c), scale = q.scale(i, c);
        if (wants_value(want)) value[c] -= std::abs(rest) / scale + std::log(2 * scale);
        if (wants_gradient(want)) gradient(i, c) = (rest < 0 ? 1 : -1) / scale;
      }
    }
  }
  void add_pathwise(const AmortizedParameters& q, MatrixView<const double> noise, MatrixView<const double> dz,
                    std::span<const double> coefficient, const AmortizedGradient& gradient) const override {
    for (int c = 0; c < q.count(); ++c)
      for (int i = 0; i < dz.rows(); ++i) {
        gradient.location(i, c) += coefficient[c] * dz(i, c);
        gradient.scale(i, c) += coefficient[c] * dz(i, c) * of(noise(i, c));
      }
  }
  void add_score(const AmortizedParameters& q, MatrixView<const double> z, std::span<const double> coefficient,
                 const AmortizedGradient& gradient) const override {
    for (int c = 0; c < q.count(); ++c)
      for (int i = 0; i < z.rows(); ++i) {
        const double rest = z(i, c) - q.location(i, c), scale = q.scale(i, c);
        gradient.location(i, c) += coefficient[c] * (rest < 0 ? -1 : 1) / scale;
        gradient.scale(i, c) += coefficient[c] * (std::abs(rest) / scale - 1) / scale;
      }
  }
  void moments(const AmortizedParameters& q, MatrixView<double> mean, MatrixView<double> sd) const override {
    std::ranges::copy(q.location.flat(), mean.flat().begin());
    for (std::size_t i = 0; i < sd.flat().size(); ++i) sd.flat()[i] = std::sqrt(2.0) * q.scale.flat()[i];
  }
};

// The library's Adam, or plain ascent with a momentum, as a caller would bring them.
class OwnAdam final : public ModelOptimizer {
 public:
  std::unique_ptr<ModelOptimizer> clone() const override { return std::make_unique<OwnAdam>(); }
  std::string name() const override { return "own-adam"; }
  void step(std::span<const TensorStep> tensors, std::uint32_t iteration) override {
    const AdamCorrection correction(iteration);
    std::size_t at = 0;
    for (const TensorStep& tensor : tensors) {
      first_.resize(std::max(first_.size(), at + tensor.theta.size()));
      second_.resize(first_.size());
      for (std::size_t i = 0; i < tensor.theta.size(); ++i, ++at)
        tensor.theta[i] += adam_step(tensor.rate, tensor.gradient[i], correction, first_[at], second_[at]);
    }
  }
  void visit_state(const Visit& visit) override {
    visit("first", first_);
    visit("second", second_);
  }

 private:
  std::vector<double> first_, second_;
};

std::shared_ptr<const AmortizedFamily> low_rank(int rank) { return std::make_shared<LowRankGaussian>(rank); }

TrainState trained(const TrainConfig& config, const DataSet& data, int threads = 1, std::uint32_t stop = 0) {
  constexpr std::uint32_t iterations = 12;
  TrainMetrics metrics;
  auto engine = make_engine(EngineKind::cpu, config, data, {.threads = threads});
  if (stop > 0) {
    engine->train(stop, metrics);
    const TrainState state = engine->save();
    engine = make_engine(EngineKind::cpu, config, data, {.threads = threads});
    engine->restore(state);
  }
  engine->train(iterations - stop, metrics);
  return engine->save();
}

std::vector<TrainConfig> configurations() {
  std::vector<TrainConfig> all;
  for (const SomeObjective& objective :
       {by_kl(), by_hoffman(), by_vcd(), by_li2017(), by_vcd({.entropy = Entropy::sampled})})
    for (const std::shared_ptr<const AmortizedFamily>& family :
         {low_rank(2), std::shared_ptr<const AmortizedFamily>(std::make_shared<Laplace>())}) {
      TrainConfig config = small();
      config.objective = objective;
      config.family = family;
      if (all.size() % 3 == 1) config.own_optimizer = std::make_shared<OwnAdam>();
      if (all.size() % 4 == 2) config.step_scale = StepScale::q;
      all.push_back(config);
    }
  return all;
}

TEST(EngineOwnParts, HaveTheSameBitsOnThreadsAndAfterAResume) {
  const DataSet data = made_up_data();
  for (const TrainConfig& config : configurations()) {
    const TrainState alone = trained(config, data);
    for (const int threads : {2, 3}) expect_same(alone, trained(config, data, threads));
    expect_same(alone, trained(config, data, 2, 5));
  }
}

TEST(EngineOwnParts, HaveTheSameBitsOnRanks) {
  const DataSet data = made_up_data();
  for (const TrainConfig& config : configurations()) {
    const TrainState alone = trained(config, data);
    for (const int size : {2, 4})
      ThreadRanks::run(size, [&](Ranks& ranks) {
        const auto engine = make_engine(EngineKind::cpu, config, data, {}, {.ranks = &ranks});
        TrainMetrics metrics;
        engine->train(12, metrics);
        expect_same(alone, engine->save());
      });
  }
}

TEST(EngineOwnParts, AnOptimizerComputesWhatTheSameOneOfTheLibraryDoes) {
  const DataSet data = made_up_data();
  TrainConfig config = small();
  config.precision = Precision::float64;
  TrainState library = trained(config, data);
  config.own_optimizer = std::make_shared<OwnAdam>();
  config.optimizer = OptimizerKind::rmsprop;  // not used
  TrainState own = trained(config, data);
  int compared = 0;
  for (const NamedArray& array : library.arrays)
    if (is_parameter(array)) {
      EXPECT_EQ(array_of<double>(own, array.name), std::get<std::vector<double>>(array.values)) << array.name;
      ++compared;
    }
  EXPECT_EQ(compared, 14);
  EXPECT_EQ(array_of<double>(own, "optimizer.own-adam.second").size(),
            array_of<double>(own, "optimizer.own-adam.first").size());
}

// Each run of a group has a clone, and the bits that it has alone.
TEST(EngineOwnParts, EveryRunHasAnOptimizerOfItsOwn) {
  const DataSet data = made_up_data();
  TrainConfig config = small();
  config.own_optimizer = std::make_shared<OwnAdam>();
  const auto group = make_engine(EngineKind::cpu, config, data, {.seeds = {1, 2}});
  std::vector<TrainMetrics> metrics(2);
  group->train(12, metrics);
  for (const int run : {0, 1}) {
    config.seed = static_cast<std::uint64_t>(run + 1);
    expect_same(trained(config, data), group->save(run));
  }
}

TEST(EngineOwnParts, AStateBelongsToItsFamilyAndOptimizer) {
  const DataSet data = made_up_data();
  TrainConfig diagonal = small(), laplace = small(), ranked = small(), other_rank = small(), own = small();
  laplace.family = std::make_shared<Laplace>();
  ranked.family = low_rank(1);
  other_rank.family = low_rank(2);
  own.own_optimizer = std::make_shared<OwnAdam>();
  const auto refused = [&](const TrainConfig& before, const TrainConfig& now, const std::string& message) {
    const TrainState state = trained(before, data);
    try {
      make_engine(EngineKind::cpu, now, data)->restore(state);
      ADD_FAILURE() << "expected: " << message;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  };
  refused(diagonal, laplace, "no array 'laplace.weight[0]'");
  refused(laplace, diagonal, "no array 'sd.weight[0]'");
  refused(ranked, other_rank, "'low-rank.weight[1]' has another size");
  refused(diagonal, own, "no array 'optimizer.own-adam.first'");
  refused(own, diagonal, "no array 'optimizer.second.decoder.weight[0]'");
}

TEST(EngineOwnParts, AreRefusedWhereTheyCannotBe) {
  class Named final : public AmortizedFamily {
   public:
    Named(std::string name, AmortizedShape shape) : name_(std::move(name)), shape_(shape) {}
    std::string name() const override { return name_; }
    AmortizedShape shape(int) const override { return shape_; }
    void draw(const AmortizedParameters&, MatrixView<const double>, MatrixView<double>) const override {}
    void log_density(const AmortizedParameters&, MatrixView<const double>, Want, std::span<double>,
                     MatrixView<double>) const override {}
    void add_pathwise(const AmortizedParameters&, MatrixView<const double>, MatrixView<const double>,
                      std::span<const double>, const AmortizedGradient&) const override {}
    void add_score(const AmortizedParameters&, MatrixView<const double>, std::span<const double>,
                   const AmortizedGradient&) const override {}
    void moments(const AmortizedParameters&, MatrixView<double>, MatrixView<double>) const override {}

   private:
    std::string name_;
    AmortizedShape shape_;
  };
  const auto key = [](const TrainConfig& config, EngineKind engine) {
    try {
      check(config, engine);
    } catch (const KeyError& error) {
      return error.key();
    }
    return std::string();
  };
  TrainConfig config = small();
  EXPECT_EQ(key(config, EngineKind::cuda), "");
  config.family = low_rank(2);
  EXPECT_EQ(key(config, EngineKind::cpu), "");
  EXPECT_EQ(key(config, EngineKind::cuda), "family");
  config.family = low_rank(latent + 1);
  EXPECT_EQ(key(config, EngineKind::cpu), "rank");
  for (const char* name : {"", "mean", "decoder", "a.b"}) {
    config.family = std::make_shared<Named>(name, AmortizedShape{1, 1, 1, 1});
    EXPECT_EQ(key(config, EngineKind::cpu), "family") << name;
  }
  for (const AmortizedShape shape :
       {AmortizedShape{0, 1, 1, 1}, {1, 0, 0, 1}, {1, 1, 1, 0}, {1, 1, 2, 1}, {1, 1, -1, 1}}) {
    config.family = std::make_shared<Named>("own", shape);
    EXPECT_EQ(key(config, EngineKind::cpu), "family");
  }
  config.family = nullptr;
  EXPECT_THROW(check(config, EngineKind::cpu), InputError);
  config = small();
  config.own_optimizer = std::make_shared<OwnAdam>();
  EXPECT_EQ(key(config, EngineKind::cpu), "");
  EXPECT_EQ(key(config, EngineKind::cuda), "own_optimizer");
  config = small();
  config.family = std::make_shared<Laplace>();
  config.objective = by_vcd({.entropy = Entropy::analytic});
  EXPECT_THROW(make_engine(EngineKind::cpu, config, made_up_data()), InputError);
}

// What a trained q is used for: its moments are those of its draws, its draws can be refined, data evaluated.
TEST(EngineOwnParts, ATrainedFamilyCanBeUsed) {
  const DataSet data = made_up_data();
  for (const std::shared_ptr<const AmortizedFamily>& family :
       {low_rank(2), std::shared_ptr<const AmortizedFamily>(std::make_shared<Laplace>())}) {
    TrainConfig config = small();
    config.family = family;
    const auto engine = make_engine(EngineKind::cpu, config, data);
    TrainMetrics metrics;
    engine->train(100, metrics);
    const auto model = freeze(config, engine->save(), data);
    constexpr int rounds = 4000;
    const std::vector<int> indices = {3, 100};
    Matrix<double> mean(latent, 2), sd(latent, 2), z(latent, 2);
    model->encode(data, indices, mean, sd);
    std::vector<Moments> moments(2 * latent);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      model->draw_q(data, indices, PhiloxSource(round), z);
      for (std::size_t i = 0; i < moments.size(); ++i) moments[i].add(z.view().flat()[i]);
    }
    for (std::size_t i = 0; i < moments.size(); ++i) {
      EXPECT_NEAR(moments[i].mean(), mean.view().flat()[i], 4 * moments[i].estimate().se);
      EXPECT_NEAR(moments[i].sd() / sd.view().flat()[i], 1, 4 * 1.2 / std::sqrt(rounds));  // kurtosis 6 at most
    }
    EXPECT_GT(model->refine(data, indices, 20, PhiloxSource(1), z, {}), 0.5);
    // Importance sampling and annealing agree: both are estimates of log p(x), the proposals around q's moments.
    const EvaluationConfig evaluation{.samples = 2000, .burn_in = 50, .kept = 50, .points = 30};
    const auto sampled = engine->evaluate(data, evaluation, {}, 0);
    const auto annealed = engine->anneal(data, {.config = {.steps = 60, .chains = 8}, .points = 30}, {}, 0);
    for (int i = 0; i < 30; ++i)
      EXPECT_NEAR(sampled[i].mixture.log_likelihood, annealed[i].estimate.log_likelihood, 0.2) << i;
  }
}

}  // namespace
}  // namespace hone::test
