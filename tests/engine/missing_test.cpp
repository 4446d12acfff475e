// Missing values have no part in the likelihood: values against sums over the observed entries, gradients against
// differences, the evidence of gaussian-mf against the normal density of what was observed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/latent/likelihoods.hpp"
#include "hone/latent/model.hpp"
#include "hone/tensor/triangular.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

constexpr int pixels = 21, latent = 2, points = 30, categories = 3;
constexpr double missing_value = std::numeric_limits<double>::quiet_NaN();

bool is_missing(int n, int p) { return p == 4 || (3 * n + 5 * p) % 7 == 0; }  // pixel 4 always is

// Whether a value takes part: of a categorical likelihood a whole group does, if all of it was observed.
bool is_seen(Density density, int n, int p) {
  if (density != Density::categorical) return !is_missing(n, p);
  const int first = p / categories * categories;
  return !is_missing(n, first) && !is_missing(n, first + 1) && !is_missing(n, first + 2);
}

double value_at(Density density, int n, int p) {
  const int word = (p * 7 + n * 13) % 11;
  if (density == Density::categorical) return p % categories == (n + p / categories) % categories;
  if (density == Density::bernoulli) return word < 4;
  return density == Density::poisson || density == Density::negative_binomial ? word : 0.1 * word - 0.5;
}

DataSet holed_data(Density density) {
  std::vector<double> values;
  for (int n = 0; n < points; ++n)
    for (int p = 0; p < pixels; ++p) values.push_back(is_missing(n, p) ? missing_value : value_at(density, n, p));
  return DataSet(values, ImageShape{1, pixels});
}

struct Case {
  const char* name;
  ModelKind kind;
  Density likelihood = Density::bernoulli;  // of vae and mf
};

ModelConfig config_of(const Case& c) {
  ModelConfig config{
      .kind = c.kind, .latent = latent, .hidden = {}, .encoder_hidden = {6}, .missing = Missing::ignored};
  config.likelihood = c.likelihood;
  if (c.likelihood == Density::categorical) config.categories = categories;
  if (c.kind == ModelKind::vae) config.hidden = {9};
  return config;
}

// Of value p, from all outputs a of the decoder; for a group of a categorical likelihood at its 1.
double log_p(Density density, double x, std::span<const double> a, int p) {
  const double at = a[p], rate = modified_softplus(at);
  const auto normal = [&](double sd) { return -0.5 * (log_two_pi + square((x - at) / sd)) - std::log(sd); };
  switch (density) {
    case Density::bernoulli:
      return x * at - std::log1p(std::exp(at));
    case Density::gaussian:
      return normal(0.1);
    case Density::gaussian_learned:
      return normal(0.01 + std::log1p(std::exp(a[pixels + p])));
    case Density::poisson:
      return x * std::log(rate) - rate - std::lgamma(x + 1);
    case Density::negative_binomial: {
      const double r = modified_softplus(a[pixels + p]);
      return std::lgamma(x + r) - std::lgamma(r) - std::lgamma(x + 1) + r * std::log(r / (r + rate)) +
             x * std::log(rate / (r + rate));
    }
    case Density::categorical:
      break;
  }
  double sum = 0;
  for (int i = p / categories * categories, k = 0; k < categories; ++k) sum += std::exp(a[i + k]);
  return x == 1 ? at - std::log(sum) : 0;
}

struct World {
  explicit World(const Case& c)
      : config(config_of(c)),
        data(holed_data(config.density())),
        model(config, data),
        batch(model.minibatch(points)),
        z(latent, points) {
    model.initialize(PhiloxSource(3));
    for (double& x : model.parameters().values()) x *= c.kind == ModelKind::vae ? 1 : 30;
    model.pack(0, 1);
    std::vector<int> all(points);
    for (int n = 0; n < points; ++n) all[static_cast<std::size_t>(n)] = n, columns.push_back(n);
    model.expand(data, all, 0, points, batch);
    PhiloxSource(4).normals({Purpose::draw}, z.view().flat());
  }

  double total() {
    model.pack(0, 1);
    std::vector<double> value(points);
    model.decoder().log_joint({z, batch, columns}, Want::value, value, {});
    double sum = 0;
    for (const double v : value) sum += v;
    return sum;
  }

  ModelConfig config;
  DataSet data;
  Model<double> model;
  Minibatch<double> batch;
  Matrix<double> z;
  std::vector<std::uint32_t> columns;
};

class MissingValues : public testing::TestWithParam<Case> {};

TEST_P(MissingValues, ValueIsTheSumOverObservedEntries) {
  World w(GetParam());
  const Density density = w.config.density();
  std::vector<double> value(points);
  w.model.decoder().log_joint({w.z, w.batch, w.columns}, Want::value, value, {});
  Matrix<double> a(w.model.decoder().outputs(), points);
  w.model.decoder().outputs(w.z, a);
  std::vector<double> centre(pixels);
  if (density == Density::gaussian || density == Density::gaussian_learned) centre = mean_of(w.data);
  EXPECT_EQ(centre[4], 0);  // where nothing was observed
  for (int n = 0; n < points; ++n) {
    double expected = 0;
    for (int p = 0; p < pixels; ++p)
      if (is_seen(density, n, p)) expected += log_p(density, value_at(density, n, p) - centre[p], a.column(n), p);
    for (const double z : w.z.column(n)) expected += log_standard_normal(z);
    EXPECT_NEAR(value[n], expected, 1e-9 * std::abs(expected)) << n;
  }
}

TEST_P(MissingValues, GradientsAreThoseOfDifferences) {
  World w(GetParam());
  std::vector<double> value(points);
  Matrix<double> gradient(latent, points);
  w.model.decoder().log_joint({w.z, w.batch, w.columns}, Want::both, value, gradient);
  for (int n = 0; n < points; n += 3)
    for (int d = 0; d < latent; ++d) {
      double& at = w.z(d, n);
      const double keep = at;
      const double slope = derivative([&](double shift) { return at = keep + shift, w.total(); }, 1e-4);
      at = keep;
      EXPECT_NEAR(gradient(d, n), slope, 1e-5 * (1 + std::abs(slope))) << n << " " << d;
    }
  Tape<double> tape;
  w.model.decoder().prepare(tape, points);
  w.model.decoder().record({w.z, w.batch, w.columns}, 0, points, tape);
  std::vector<double> sums(w.model.parameters().values().size());
  w.model.decoder().sum_gradient(tape, {.part = 0, .parts = 1, .begin = 0, .end = points}, sums);
  for (const Tensor& tensor : w.model.parameters().tensors()) {
    if (!tensor.name.starts_with("decoder.")) continue;
    for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size(); i += 1 + tensor.size() / 9) {
      double& at = w.model.parameters().values()[i];
      const double keep = at;
      const double slope = derivative([&](double shift) { return at = keep + shift, w.total(); }, 1e-4);
      at = keep;
      EXPECT_NEAR(sums[i], slope, 1e-5 * (1 + std::abs(slope))) << tensor.name << " " << i - tensor.offset;
    }
  }
}

TEST_P(MissingValues, TrainAndLeaveWhatWasNeverSeenAlone) {
  TrainConfig config;
  config.model = config_of(GetParam());
  config.batch = 10;
  config.refine.steps = 2;
  const DataSet data = holed_data(config.model.density());
  const auto engine = make_cpu_engine(config, data, {});
  const auto never_seen = [&](std::size_t output) {
    const int p = static_cast<int>(output) % pixels;
    return config.model.density() == Density::categorical ? p / categories == 4 / categories : p == 4;
  };
  const std::string name = GetParam().kind == ModelKind::vae ? "decoder.weight[1]" : "decoder.weight[0]";
  const std::size_t outputs = outputs_of(config.model.density(), {pixels, config.model.categories});
  TrainState before = engine->save();
  TrainMetrics metrics;
  engine->train(5, metrics);
  TrainState after = engine->save();
  const auto &first = array_of<float>(before, name), &last = array_of<float>(after, name);
  for (std::size_t i = 0; i < first.size(); ++i)
    if (never_seen(i % outputs))
      EXPECT_EQ(first[i], last[i]);
    else
      EXPECT_NE(first[i], last[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(All, MissingValues,
                         testing::Values(Case{"vae", ModelKind::vae}, Case{"logistic_mf", ModelKind::logistic_mf},
                                         Case{"gaussian_mf", ModelKind::gaussian_mf},
                                         Case{"poisson_mf", ModelKind::poisson_mf},
                                         Case{"vae_gaussian", ModelKind::vae, Density::gaussian},
                                         Case{"vae_gaussian_learned", ModelKind::vae, Density::gaussian_learned},
                                         Case{"vae_categorical", ModelKind::vae, Density::categorical},
                                         Case{"vae_negative_binomial", ModelKind::vae, Density::negative_binomial},
                                         Case{"mf_gaussian_learned", ModelKind::mf, Density::gaussian_learned},
                                         Case{"mf_categorical", ModelKind::mf, Density::categorical},
                                         Case{"mf_negative_binomial", ModelKind::mf, Density::negative_binomial}),
                         [](const auto& tested) { return std::string(tested.param.name); });

// x_o ~ N(0, W_oᵀ W_o + s² I), by the Cholesky factor of that matrix
TEST(MissingEvidence, IsTheNormalDensityOfWhatWasObserved) {
  World w({"", ModelKind::gaussian_mf});
  const auto weight = w.model.parameters().of(0);  // (D, P)
  const std::vector<double> centre = mean_of(w.data);
  for (int n = 0; n < points; ++n) {
    std::vector<int> seen;
    for (int p = 0; p < pixels; ++p)
      if (!is_missing(n, p)) seen.push_back(p);
    const int size = static_cast<int>(seen.size());
    Matrix<double> covariance(size, size);
    std::vector<double> x;
    for (int i = 0; i < size; ++i) {
      x.push_back(value_at(Density::gaussian, n, seen[i]) - centre[seen[i]]);
      for (int j = 0; j < size; ++j) {
        covariance(i, j) = i == j ? 0.01 : 0;
        for (int d = 0; d < latent; ++d)
          covariance(i, j) += weight[d * pixels + seen[i]] * weight[d * pixels + seen[j]];
      }
    }
    const std::vector<double> lower = cholesky(covariance);
    solve_lower(lower, x, x);
    double expected = -0.5 * size * log_two_pi;
    for (int i = 0; i < size; ++i) expected -= 0.5 * square(x[i]) + std::log(lower[packed(i, i)]);
    EXPECT_NEAR(w.model.exact_log_likelihood(w.batch, n), expected, 1e-8 * std::abs(expected)) << n;
  }
}

TEST(MissingValuesAreRefused, UnlessTheConfigurationIgnoresThem) {
  ModelConfig config = config_of(Case{"", ModelKind::gaussian_mf});
  config.missing = Missing::refused;
  const DataSet data = holed_data(Density::gaussian);
  try {
    Model<double> model(config, data);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("datum 0 has the value nan at position 0"));
  }
  TrainConfig train;
  train.model.missing = Missing::ignored;
  EXPECT_THROW(check(train, EngineKind::cuda), KeyError);
  EXPECT_NO_THROW(check(train, EngineKind::cpu));
}

}  // namespace
}  // namespace hone::test
