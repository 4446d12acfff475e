// The gradients of a whole iteration against differences of the objective's surrogate, in all parameters of the model
// and of its q.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "hone/base/scalar.hpp"
#include "hone/latent/model.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

constexpr int batch = 37, latent = 3, pixels = 101, points = 60;

DataSet made_up_data(Density density) {
  std::vector<double> values(static_cast<std::size_t>(points) * pixels);
  PhiloxSource(2).uniforms({Purpose::synthesize}, values);
  const LikelihoodFacts facts = facts_of(density);
  for (double& x : values) x = facts.bits ? x < 0.4 : facts.counts ? std::floor(4 * x * x) : x - 0.5;
  if (facts.grouped)  // one group
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % pixels == i / pixels;
  DataSet data(values, ImageShape{1, pixels});
  return facts.bits ? packed_if_binary(data) : data;
}

// A record of what an iteration saw.
struct Seen {
  explicit Seen(const IterationView& view) : evidence(view.evidence), q(view.q), gradient(widened(view.gradient)) {}
  Evidence evidence;
  MinibatchFamily q;
  std::vector<double> gradient;
};

class World {
 public:
  explicit World(const TrainConfig& config)
      : config_(config),
        data_(made_up_data(config.model.density())),
        model_(config.model, data_),
        minibatch_(model_.minibatch(batch)),
        indices_(batch),
        columns_(batch),
        baseline_(points),
        first_baseline_(points) {
    std::iota(columns_.begin(), columns_.end(), 0u);
    EngineOptions options;
    options.threads = 2;
    const auto engine = make_cpu_engine(config, data_, std::move(options),
                                        {.observe = [this](const IterationView& view) { seen_.emplace(view); }});
    TrainState state = engine->save();
    for (NamedArray& array : state.arrays)  // a start with a moderate f, so that differences keep their digits
      if (is_parameter(array) && !array.name.starts_with("decoder."))
        for (double& x : std::get<std::vector<double>>(array.values)) x *= 0.4;
    engine->restore(state);
    TrainMetrics metrics;
    engine->train(2, metrics);  // C is no longer 0, and with shared_until = 1 each datum has its own
    state = engine->save();
    for (const Tensor& tensor : model_.parameters().tensors())
      std::ranges::copy(array_of<double>(state, tensor.name),
                        model_.parameters().values().begin() + static_cast<std::ptrdiff_t>(tensor.offset));
    if (terms_.score_first()) first_baseline_ = array_of<double>(state, "baseline.first");
    if (terms_.start_score) baseline_ = array_of<double>(state, "baseline.second");
    permuted_minibatches(points, config.seed)->fill(3, indices_);
    engine->train(1, metrics);
    model_.expand(data_, indices_, 0, batch, minibatch_);
  }

  void check(double step, double tolerance) {
    for (const Tensor& tensor : model_.parameters().tensors())
      for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size(); i += 1 + tensor.size() / 4) {
        const bool decoder = tensor.name.starts_with("decoder.");
        double& parameter = model_.parameters().values()[i];
        const double keep = parameter;
        const auto shifted = [&](double shift) {
          parameter = keep + shift;
          model_.pack(0, 1);
          return decoder ? likelihood() : surrogate();
        };
        const double slope = derivative(shifted, step);
        shifted(0);
        EXPECT_NEAR(seen_->gradient[i], slope, tolerance * (scale() + std::abs(slope)))
            << tensor.name << " " << i - tensor.offset;
      }
  }

  bool some_weight_is_cut() const { return cut_ > 0; }

 private:
  bool refines() const { return terms_.refines; }
  double scale() const { return facts_of(config_.model.density()).centred ? 1000 : 10; }

  // The third iteration is looked at.
  double alpha() const {
    const Ramp& ramp = terms_.ramp;
    return ramp.until <= 3 ? terms_.alpha : terms_.alpha * (3.0 - ramp.from) / (ramp.until - ramp.from);
  }

  double log_joint(MatrixView<const double> z, std::span<double> value) const {
    model_.decoder().log_joint({z, minibatch_, columns_}, Want::value, value, {});
    return std::accumulate(value.begin(), value.end(), 0.0);
  }

  // Σ_n log p(x_n, z_n) at fixed points
  double likelihood() const {
    std::vector<double> value(batch);
    return log_joint(refines() ? seen_->evidence.refined.z : seen_->evidence.draws.z, value);
  }

  static double log_q(const Matrix<double>& mean, const Matrix<double>& sd, const Matrix<double>& z, int n) {
    double sum = 0;
    for (int d = 0; d < latent; ++d)
      sum += -0.5 * log_two_pi - std::log(sd(d, n)) - 0.5 * square((z(d, n) - mean(d, n)) / sd(d, n));
    return sum;
  }

  // (f − C) log q(z0) with f and z0 held fixed; if the entropy is exact, log p takes the place of f
  double first_score(int n, double log_q0) const {
    const Evidence& evidence = seen_->evidence;
    const bool analytic = terms_.entropy != Entropy::sampled;
    const double f = evidence.log_p0[n] - (analytic ? 0 : evidence.log_q0[n]);
    return (f - first_baseline_[indices_[n]]) * log_q0;
  }

  // In the first term z0 moves with θ along its path; z_t, f(z_t) and the z0 of a score are held fixed.
  double surrogate() {
    const Evidence& evidence = seen_->evidence;
    Matrix<double> mean(latent, batch), sd(latent, batch), z(latent, batch), old_mean(latent, batch),
        old_sd(latent, batch);
    model_.encoder().prepare(tape_, minibatch_.view());
    model_.encoder().forward(tape_, 0, batch, mean, sd);
    std::ranges::copy(seen_->q.location().flat(), old_mean.view().flat().begin());
    std::ranges::copy(seen_->q.scale().flat(), old_sd.view().flat().begin());
    for (int n = 0; n < batch; ++n)
      for (int d = 0; d < latent; ++d) z(d, n) = mean(d, n) + sd(d, n) * evidence.draws.noise(d, n);
    std::vector<double> log_p(batch);
    log_joint(z, log_p);
    const bool analytic = terms_.entropy != Entropy::sampled;
    double sum = 0;
    for (int n = 0; n < batch; ++n) {
      double normalizer = 0, old_normalizer = 0;
      for (int d = 0; d < latent; ++d) {
        normalizer += 0.5 * log_two_pi + std::log(sd(d, n));
        old_normalizer += 0.5 * log_two_pi + std::log(old_sd(d, n));
      }
      const double at_zt = log_q(mean, sd, evidence.refined.z, n);
      if (terms_.refined_score) sum += alpha() * at_zt;
      if (!terms_.first) continue;
      sum += terms_.first_term == FirstTerm::score
                 ? first_score(n, log_q(mean, sd, evidence.draws.z, n)) + (analytic ? normalizer : 0)
                 : log_p[n] + (analytic ? normalizer : -log_q(old_mean, old_sd, z, n));
      if (!terms_.start_score) continue;
      const double f =
          evidence.refined.value[n] - log_q(old_mean, old_sd, evidence.refined.z, n) - (analytic ? old_normalizer : 0);
      const double weight = f - baseline_[indices_[n]], most = terms_.score_bound;
      cut_ += std::abs(weight) > most;
      sum -= alpha() * (weight > most ? most : weight < -most ? -most : weight) * log_q(mean, sd, evidence.draws.z, n);
    }
    return sum;
  }

  TrainConfig config_;
  ObjectiveTerms terms_ = config_.objective->terms().value();
  DataSet data_;
  Model<double> model_;
  Minibatch<double> minibatch_;
  EncoderTape<double> tape_;
  std::vector<int> indices_;
  std::vector<std::uint32_t> columns_;
  std::vector<double> baseline_, first_baseline_;  // C of the second and of the first term
  std::optional<Seen> seen_;
  int cut_ = 0;
};

TrainConfig config_of(const SomeObjective& objective, ModelKind model = ModelKind::vae,
                      Activation activation = Activation::tanh) {
  TrainConfig config = TrainConfig::paper();
  config.model = {
      model, latent, model == ModelKind::vae ? std::vector{64, 13} : std::vector<int>{}, {64, 13}, activation};
  config.model.initial = InitialWeights::paper;
  config.objective = objective;
  config.shared_until = 1;
  config.refine = {.steps = 3, .adapt = Adapt::inside, .step_size = 0.1, .acceptance = 0.9};
  config.batch = batch;
  config.precision = Precision::float64;
  return config;
}

class EngineGradient : public testing::TestWithParam<const char*> {};

TEST_P(EngineGradient, OfTheSurrogate) { World(config_of(objective_named(GetParam()))).check(1e-3, 1e-7); }

TEST_P(EngineGradient, WithSampledEntropy) {
  World(config_of(objective_named(GetParam(), {.entropy = Entropy::sampled}))).check(1e-3, 1e-7);
}

TEST_P(EngineGradient, WithTheScoreInTheFirstTerm) {
  if (GetParam() == std::string("li2017")) GTEST_SKIP() << "has no such term";
  for (const Entropy entropy : {Entropy::analytic, Entropy::sampled})
    World(config_of(objective_named(GetParam(), {.first_term = FirstTerm::score, .entropy = entropy})))
        .check(1e-3, 1e-7);
}

TEST_P(EngineGradient, WithRelu) {
  World(config_of(objective_named(GetParam()), ModelKind::vae, Activation::relu)).check(1e-6, 1e-5);
}

TEST_P(EngineGradient, OfMatrixFactorization) {
  for (const ModelKind kind : {ModelKind::logistic_mf, ModelKind::gaussian_mf, ModelKind::poisson_mf})
    World(config_of(objective_named(GetParam()), kind, Activation::softplus)).check(1e-3, 1e-7);
}

TEST_P(EngineGradient, OfEveryLikelihood) {
  for (const Density likelihood :
       {Density::gaussian, Density::gaussian_learned, Density::categorical, Density::negative_binomial})
    for (const ModelKind kind : {ModelKind::vae, ModelKind::mf}) {
      SCOPED_TRACE(facts_of(likelihood).name);
      TrainConfig config = config_of(objective_named(GetParam()), kind);
      config.model.initial = InitialWeights::scaled;
      config.model.likelihood = likelihood;
      if (likelihood == Density::categorical) config.model.categories = pixels;
      World(config).check(1e-3, 1e-7);
    }
}

INSTANTIATE_TEST_SUITE_P(Objectives, EngineGradient, testing::Values("kl", "hoffman", "vcd", "li2017"),
                         [](const auto& objective) { return std::string(objective.param); });

TEST(EngineGradientOptions, AlphaAndLargeT) {
  World(config_of(by_vcd({.alpha = 0.3}))).check(1e-3, 1e-7);
  World(config_of(by_vcd({.alpha = 0.3, .estimator = Estimator::large_t}))).check(1e-3, 1e-7);
}

TEST(EngineGradientOptions, AlphaGrowsAndWeightsAreCut) {
  World(config_of(by_vcd({.ramp = {.from = 1, .until = 5}}))).check(1e-3, 1e-7);
  World(config_of(by_vcd({.alpha = 0.8, .ramp = {.from = 1, .until = 3}}))).check(1e-3, 1e-7);
  for (const Entropy entropy : {Entropy::analytic, Entropy::sampled}) {
    World world(config_of(by_vcd({.ramp = {.from = 2, .until = 4}, .score_bound = 2, .entropy = entropy})));
    world.check(1e-3, 1e-7);
    EXPECT_TRUE(world.some_weight_is_cut());
  }
}

TEST(EngineGradientOptions, ScaledInitialWeights) {
  for (const ModelKind kind : {ModelKind::vae, ModelKind::logistic_mf, ModelKind::gaussian_mf, ModelKind::poisson_mf}) {
    TrainConfig config = config_of(by_vcd({.score_bound = 3}), kind);
    config.model.initial = InitialWeights::scaled;
    World(config).check(1e-3, 1e-7);
  }
}

}  // namespace
}  // namespace hone::test
