// Models with every likelihood: their evidence by both estimators against quadrature over a latent dimension of one,
// training, and the same bits on any number of threads.

#include <gtest/gtest.h>

#include <cmath>

#include "hone/latent/likelihoods.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

struct Case {
  ModelKind kind;
  Density likelihood;
  std::vector<double> rows;  // of six values
  int categories = 0;
};

const std::vector<double> numbers = {0.2, -0.4, 0.9, 0.1, 0, 0.6, -0.3, 0.5, -0.8, 0.3, 0.1, 0.2};
const std::vector<double> counts = {0, 1, 3, 0, 2, 9, 5, 0, 0, 1, 1, 30};
const std::vector<double> groups = {1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1};
const std::vector<double> bits = {1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> list;
    for (const ModelKind kind : {ModelKind::vae, ModelKind::mf}) {
      list.push_back({kind, Density::bernoulli, bits});
      list.push_back({kind, Density::gaussian, numbers});
      list.push_back({kind, Density::gaussian_learned, numbers});
      list.push_back({kind, Density::categorical, groups, 3});
      list.push_back({kind, Density::poisson, counts});
      list.push_back({kind, Density::negative_binomial, counts});
    }
    return list;
  }();
  return all;
}

DataSet data_of(const Case& c) { return packed_if_binary(DataSet(c.rows, ImageShape{1, 6})); }

TrainConfig config_of(const Case& c) {
  TrainConfig config = TrainConfig::paper();
  config.model = {.kind = c.kind,
                  .latent = 1,
                  .hidden = c.kind == ModelKind::vae ? std::vector{3} : std::vector<int>{},
                  .encoder_hidden = {2},
                  .activation = Activation::tanh,
                  .likelihood = c.likelihood,
                  .categories = c.categories};
  config.batch = 1;
  config.precision = Precision::float64;
  config.refine.step_size = 0.3;
  return config;
}

double positive(double a) { return std::log(std::exp(1e-4) + std::exp(a)); }

// log p(x | a), written out.
double log_likelihood(const Case& c, const std::vector<double>& a, const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t p = 0; p < x.size(); ++p) {
    const double m = positive(a[p]);
    const auto normal = [&](double sd) {
      return -0.5 * std::log(2 * M_PI * sd * sd) - (x[p] - a[p]) * (x[p] - a[p]) / (2 * sd * sd);
    };
    if (c.likelihood == Density::bernoulli) sum += x[p] * a[p] - std::log(1 + std::exp(a[p]));
    if (c.likelihood == Density::gaussian) sum += normal(0.1);
    if (c.likelihood == Density::gaussian_learned) sum += normal(0.01 + std::log(1 + std::exp(a[x.size() + p])));
    if (c.likelihood == Density::poisson) sum += x[p] * std::log(m) - m - std::lgamma(x[p] + 1);
    if (c.likelihood == Density::negative_binomial) {
      const double r = positive(a[x.size() + p]), success = m / (r + m);
      sum += std::lgamma(x[p] + r) - std::lgamma(r) - std::lgamma(x[p] + 1) + r * std::log(1 - success) +
             x[p] * std::log(success);
    }
    if (c.likelihood == Density::categorical && x[p] == 1) {
      const std::size_t first = p / 3 * 3;
      sum += a[p] - std::log(std::exp(a[first]) + std::exp(a[first + 1]) + std::exp(a[first + 2]));
    }
  }
  return sum;
}

struct Array {
  std::vector<double> values;
  std::size_t rows = 0;
};
Array array(const TrainState& state, const std::string& name) {
  for (const NamedArray& each : state.arrays)
    if (each.name == "decoder." + name)
      return {std::get<std::vector<double>>(each.values), static_cast<std::size_t>(each.shape[0])};
  return {};
}

std::vector<double> layer(const TrainState& state, const std::string& index, const std::vector<double>& in) {
  const Array weight = array(state, "weight" + index), bias = array(state, "bias" + index);
  std::vector<double> out(weight.values.size() / weight.rows);
  for (std::size_t j = 0; j < out.size(); ++j) {
    out[j] = bias.values.empty() ? 0 : bias.values[j];
    for (std::size_t i = 0; i < in.size(); ++i) out[j] += weight.values[i * out.size() + j] * in[i];
  }
  return out;
}

double evidence(const Case& c, const TrainState& state, std::vector<double> x) {
  if (facts_of(c.likelihood).centred)
    for (std::size_t p = 0; p < x.size(); ++p) x[p] -= 0.5 * (c.rows[p] + c.rows[6 + p]);
  double sum = 0;
  constexpr double width = 1e-3;
  for (double z = -9; z <= 9; z += width) {
    std::vector<double> a = layer(state, "[0]", {z});
    if (c.kind == ModelKind::vae) {
      for (double& h : a) h = std::tanh(h);
      a = layer(state, "[1]", a);
    }
    sum += width * std::exp(log_likelihood(c, a, x) - 0.5 * z * z) / std::sqrt(2 * M_PI);
  }
  return std::log(sum);
}

// Parameters that are moderate, but not small.
void spread(TrainState& state) {
  for (NamedArray& each : state.arrays)
    if (is_parameter(each))
      for (double k = 1; double& x : std::get<std::vector<double>>(each.values))
        x = each.name.starts_with("decoder.") ? 0.8 * std::sin(3 * k++) : 0.3 * std::cos(k++);
}

TEST(LikelihoodEvidence, ImportanceSamplingAndAnnealingAgainstQuadrature) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(std::string(facts_of(c.likelihood).name) + (c.kind == ModelKind::vae ? " vae" : " mf"));
    const DataSet data = data_of(c);
    const auto engine = make_cpu_engine(config_of(c), data, {});
    TrainState state = engine->save();
    spread(state);
    engine->restore(state);
    EvaluationConfig config;
    config.samples = 4000;
    const auto points = engine->evaluate(data, config, {});
    AnnealingTask task;
    task.config = {200, 40, 3};
    const auto annealed = engine->anneal(data, task, {});
    for (int n = 0; n < 2; ++n) {
      const double exact = evidence(c, state, {c.rows.begin() + 6 * n, c.rows.begin() + 6 * n + 6});
      const ImportanceEstimate &mixture = points[n].mixture, &ais = annealed[n].estimate;
      EXPECT_GT(mixture.effective_samples, 500);
      EXPECT_NEAR(mixture.log_likelihood, exact, 4 / std::sqrt(mixture.effective_samples));
      EXPECT_GT(ais.effective_samples, 5);
      EXPECT_NEAR(ais.log_likelihood, exact, 4 / std::sqrt(ais.effective_samples));
      EXPECT_EQ(points[n].exact.has_value(), c.kind == ModelKind::mf && c.likelihood == Density::gaussian);
      if (points[n].exact) {
        EXPECT_NEAR(*points[n].exact, exact, 1e-6);
      }
    }
  }
}

// Data that a model made are learned by another of its kind: the ELBO rises, and threads do not change a bit.
TEST(LikelihoodTraining, LearnsWithTheSameBitsOnAnyNumberOfThreads) {
  for (const Case& c : cases())
    for (const SomeObjective& objective : {by_kl(), by_hoffman(), by_vcd()}) {
      SCOPED_TRACE(facts_of(c.likelihood).name);
      TrainConfig config = config_of(c);
      config.precision = Precision::float32;
      config.model.initial = InitialWeights::scaled;
      config.objective = objective;
      config.optimizer = OptimizerKind::adam;
      config.rate_mean = config.rate_scale = config.rate_model = 0.01;
      config.refine.steps = 2;
      std::vector<double> values;
      for (int n = 0; n < 20; ++n) values.insert(values.end(), c.rows.begin(), c.rows.end());
      const DataSet data = packed_if_binary(DataSet(values, ImageShape{1, 6}));
      config.batch = 20;
      std::vector<TrainState> states;
      for (const int threads : {1, 3}) {
        const auto engine = make_cpu_engine(config, data, {.threads = threads});
        TrainMetrics first, last;
        engine->train(20, first);
        engine->train(150, last);
        engine->train(20, last = {});
        EXPECT_GT(last.elbo.mean(), first.elbo.mean());
        states.push_back(engine->save());
      }
      for (std::size_t i = 0; i < states[0].arrays.size(); ++i)
        EXPECT_EQ(states[0].arrays[i].values, states[1].arrays[i].values) << states[0].arrays[i].name;
    }
}

}  // namespace
}  // namespace hone::test
