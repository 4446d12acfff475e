// The VCD's gradient in the mean and standard deviation of q for one datum, as training computes it, against the exact
// one: differences of the quadrature oracle. The tiny decoder is written out here a second time.

#include "tests/support/oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "tests/engine/support.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/methods.hpp"

namespace hone::test {
namespace {

constexpr int steps = 3, leapfrog = 3, batch = 100, hidden = 3, pixels = 4;
constexpr double step_size = 0.35;

const std::vector<std::vector<double>> rows = {{1, 0, 1, 1}, {0, 1, 0, 0}};

TrainConfig config_of(const std::shared_ptr<const AmortizedFamily>& family) {
  TrainConfig config = TrainConfig::paper();
  config.model = {ModelKind::vae, 1, {hidden}, {2}, Activation::tanh};
  config.model.initial = InitialWeights::paper;
  config.family = family;
  config.kernel = hmc({leapfrog});
  config.refine = {.steps = steps, .adapt = Adapt::off, .step_size = step_size, .acceptance = 0.9};
  config.batch = batch;
  config.shared_until = 5;
  config.rate_mean = config.rate_scale = config.rate_model = 0;  // nothing moves but the control variates
  config.precision = Precision::float64;
  return config;
}

// log p(x, z) of a datum with the parameters of a state.
Density density_of(TrainState& state, const std::vector<double>& x) {
  const auto array = [&](const char* name) { return array_of<double>(state, std::string("decoder.") + name); };
  const auto w0 = array("weight[0]"), b0 = array("bias[0]"), w1 = array("weight[1]"), b1 = array("bias[1]");
  const auto both = [=](double z) {
    double h[hidden], value = -0.5 * (log_two_pi + z * z), slope = -z;
    for (int j = 0; j < hidden; ++j) h[j] = std::tanh(w0[j] * z + b0[j]);
    for (int p = 0; p < pixels; ++p) {
      double a = b1[p], da = 0;
      for (int j = 0; j < hidden; ++j) {
        a += w1[j * pixels + p] * h[j];
        da += w1[j * pixels + p] * (1 - h[j] * h[j]) * w0[j];
      }
      value += x[p] * a - std::log1p(std::exp(a));
      slope += (x[p] - 1 / (1 + std::exp(-a))) * da;
    }
    return std::pair(value, slope);
  };
  return {[=](double z) { return both(z).first; }, [=](double z) { return both(z).second; }};
}

// `sd_of` is the standard deviation of q(z | x) in terms of its scales.
void check_gradient(const std::shared_ptr<const AmortizedFamily>& family,
                    const std::function<double(std::span<const double>)>& sd_of) {
  std::vector<double> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  const DataSet data = binary_data(values, pixels);
  std::vector<int> alternating(batch);
  for (int c = 0; c < batch; ++c) alternating[c] = c % 2;  // each occurrence of a datum has its own random numbers

  const int scales = family->shape(1).scale, size = 1 + scales;
  std::vector<double> q(2 * size);          // of both data: the mean and the scales
  std::vector<Moments> gradient(q.size());  // an iteration is one observation
  EngineOptions options;
  options.minibatches = std::make_unique<ReplayedMinibatches>(std::vector<std::vector<int>>{alternating});
  EngineInternals internals;
  internals.observe = [&](const IterationView& view) {
    for (int n = 0; n < 2; ++n)
      for (int part = 0; part < size; ++part) {
        const auto place = [&](int c) { return part == 0 ? c : batch + scales * c + part - 1; };
        q[size * n + part] = view.q.parameters()[place(n)];
        double sum = 0;
        for (int c = n; c < batch; c += 2) sum += view.ascent[place(c)];
        gradient[size * n + part].add(sum / (batch / 2));
      }
  };
  const auto engine = make_cpu_engine(config_of(family), data, std::move(options), std::move(internals));
  TrainState state = engine->save();
  for (NamedArray& array : state.arrays)
    if (is_parameter(array))
      for (double k = 1; double& x : std::get<std::vector<double>>(array.values))
        x = array.name.starts_with("decoder.") ? 1.2 * std::sin(3 * k++) : 0.5 * std::cos(k++);
  engine->restore(state);
  TrainMetrics metrics;
  engine->train(20'000, metrics);

  for (int n = 0; n < 2; ++n) {
    const Density density = density_of(state, rows[n]);
    const KernelOracle oracle(density, Move1d::hmc, step_size, leapfrog);
    const std::span<double> own =
        std::span(q).subspan(static_cast<std::size_t>(size * n), static_cast<std::size_t>(size));
    const auto vcd = [&] {
      const double mean = own[0], sd = sd_of(own.subspan(1));
      const auto log_q = [&](double z) { return -0.5 * log_two_pi - std::log(sd) - 0.5 * square((z - mean) / sd); };
      return oracle_values(oracle, density, log_q, steps).vcd();
    };
    std::vector<double> exact;
    for (double& parameter : own) exact.push_back(-derivative_in(parameter, vcd));
    const double norm = std::sqrt(std::inner_product(exact.begin(), exact.end(), exact.begin(), 0.0));
    for (int part = 0; part < size; ++part) {
      const Estimate estimate = gradient[size * n + part].estimate();
      EXPECT_LT(std::abs(estimate.mean - exact[part]), 4 * estimate.se) << "datum " << n << ", part " << part;
      EXPECT_LT(estimate.se, 0.01 * norm);
    }
  }
}

TEST(AmortizedOracle, VcdGradientOfEveryDatum) {
  check_gradient(std::make_shared<DiagonalGaussian>(), [](std::span<const double> sd) { return sd[0]; });
}

// In one dimension the variance is σ² + v².
TEST(AmortizedOracle, VcdGradientOfALowRankQ) {
  check_gradient(std::make_shared<LowRankGaussian>(1),
                 [](std::span<const double> scale) { return std::hypot(scale[0], scale[1]); });
}

}  // namespace
}  // namespace hone::test
