// One iteration on the device against the cpu engine.
#pragma once

#include <optional>

#include "hone/engine/cpu/iteration.hpp"
#include "tests/cuda/support.cuh"

namespace hone::test {

using cuda::PathKind, cuda::PathOptions, cuda::Runs;

enum class Start {
  drawn,  // as a run starts: far from the posterior
  wide,   // with q's deviations raised: small ones make large terms of its gradient that cancel
  near,   // with weights so small that chains move in earnest and some proposals are rejected; no ReLU is near its kink
};

struct Case {
  std::string name;
  TrainConfig config = TrainConfig::paper();
  int pixels = 101;
  Start start = Start::drawn;
};

inline void place(TrainState& state, const Case& c) {
  const ModelConfig& model = c.config.model;
  const auto numbers = [&](const std::string& net, const std::string& kind, std::size_t layer) -> std::vector<float>& {
    return std::get<std::vector<float>>(array_of(state, net + "." + kind + "[" + std::to_string(layer) + "]").values);
  };
  const auto scale = [&](const std::string& net, std::size_t layer, int units, double length) {  // of a unit's weights
    std::vector<float>& weights = numbers(net, "weight", layer);
    double squares = 0;
    for (const float w : weights) squares += static_cast<double>(w) * w;
    for (float& w : weights) w = static_cast<float>(w * length / std::sqrt(squares / units));
  };
  const auto take_sides = [&](const std::string& net, std::size_t layer, float bias) {  // about half are at rest
    for (float& b : numbers(net, "bias", layer)) b = std::copysign(bias, b);
  };
  if (c.start == Start::wide)
    for (float& b : numbers("sd", "bias", model.encoder_hidden.size())) b += 3;
  if (c.start != Start::near) return;
  for (std::size_t l = 0; l < model.hidden.size(); ++l) {
    scale("decoder", l, model.hidden[l], l == 0 ? 0.2 : 1);
    take_sides("decoder", l, l == 0 ? 1 : 3);
  }
  scale("decoder", model.hidden.size(), c.pixels, 1);
  for (const std::string net : {"mean", "sd"}) {
    for (std::size_t l = 0; l < model.encoder_hidden.size(); ++l) {
      scale(net, l, model.encoder_hidden[l], 0.3);
      take_sides(net, l, 1);
    }
    scale(net, model.encoder_hidden.size(), model.latent, 1);
  }
}

inline std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ModelKind model : {ModelKind::vae, ModelKind::logistic_mf, ModelKind::gaussian_mf, ModelKind::poisson_mf})
    for (const SomeObjective& objective : {by_kl(), by_hoffman(), by_vcd(), by_li2017()})
      all.push_back({"model " + std::to_string(static_cast<int>(model)) + ", objective " + objective->name(),
                     config_of(model, objective)});
  const auto add = [&](const std::string& name, auto change, int pixels = 101) {
    TrainConfig config = config_of(ModelKind::vae, by_vcd());
    change(config);
    all.push_back({name, config, pixels});
  };
  add("tanh", [](TrainConfig& c) { c.model.activation = Activation::tanh; });
  add("softplus", [](TrainConfig& c) { c.model.activation = Activation::softplus; });
  add("one hidden layer", [](TrainConfig& c) { c.model.hidden = {65}; });
  add("three hidden layers", [](TrainConfig& c) { c.model.hidden = {33, 70, 19}; });
  add("jitter", [](TrainConfig& c) { c.kernel = hmc({5, 3}); });
  add("between", [](TrainConfig& c) { c.refine.adapt = Adapt::between; });
  add("off", [](TrainConfig& c) { c.refine.adapt = Adapt::off; });
  add("score", [](TrainConfig& c) { c.objective = by_vcd({.first_term = FirstTerm::score}); });
  add("sampled entropy", [](TrainConfig& c) { c.objective = by_vcd({.entropy = Entropy::sampled}); });
  add("large t", [](TrainConfig& c) { c.objective = by_vcd({.estimator = Estimator::large_t}); });
  add("alpha", [](TrainConfig& c) { c.objective = by_vcd({.alpha = 0.3}); });
  add("growing alpha", [](TrainConfig& c) { c.objective = by_vcd({.alpha = 0.9, .ramp = {.from = 0, .until = 4}}); });
  add("bounded weights", [](TrainConfig& c) { c.objective = by_vcd({.score_bound = 2}); });
  add("warm-up", [](TrainConfig& c) { c.warmup = {.until = 5}; });
  add("scaled start", [](TrainConfig& c) { c.model.initial = InitialWeights::scaled; });
  add("adam", [](TrainConfig& c) { c.optimizer = OptimizerKind::adam; });
  add("batch 1", [](TrainConfig& c) { c.batch = 1; });
  add("batch 1000", [](TrainConfig& c) { c.batch = 1000; });
  add("batch 1100", [](TrainConfig& c) { c.batch = 1100; });
  add(
      "the paper's shape",
      [](TrainConfig& c) {
        c.model.latent = 10, c.model.hidden = {200, 200}, c.batch = 100, c.refine.step_size = 0.02;
      },
      784);
  return all;
}

// Largest differences from double, relative to the largest number of their kind.
struct Tolerances {
  double z0, log_p, gradient;  // q's draws; log p(x, z) and ∇_z log p(x, z)
  double refined;              // z_t
  double model, encoder;       // gradient of every tensor of the model; of q's networks, where large terms cancel
  double elbo, vcd;
  double acceptance;  // of its mean, absolute
  double step_size;   // a decision of 37 is worth 10⁻² where it follows fast, 3 · 10⁻⁴ where it does not
};
// A number of tf32 is off by 5 · 10⁻⁴; far from the posterior that is enough to reject a proposal that hardly moves.
inline constexpr Tolerances fp32 = {2e-5, 2e-5, 2e-4, 2e-4, 2e-3, 2e-3, 2e-4, 2e-2, 2e-3, 1e-5};
inline constexpr Tolerances tf32 = {3e-3, 3e-3, 1e-1, 1e-2, 3e-2, 2e-1, 3e-3, 5e-1, 1e-1, 2e-3};
// From Start::near nothing magnifies rounding.
inline constexpr Tolerances near_fp32 = {2e-5, 1e-5, 5e-5, 3e-5, 1e-4, 1e-4, 1e-5, 5e-4, 1e-4, 1e-5};
inline constexpr Tolerances near_tf32 = {3e-3, 5e-3, 5e-3, 1e-2, 2e-2, 2e-2, 2e-3, 2e-2, 1e-2, 2e-3};
constexpr Tolerances scaled(Tolerances t, double factor) {
  for (double* x :
       {&t.z0, &t.log_p, &t.gradient, &t.refined, &t.model, &t.encoder, &t.elbo, &t.vcd, &t.acceptance, &t.step_size})
    *x *= factor;
  return t;
}

struct Expected {
  std::vector<double> z0, log_p0, grad_p0, z, value, gradient;
  std::vector<Tensor> tensors;
  double step_size;
  TrainMetrics metrics;
};

template <class Real>
Expected by_cpu(TrainConfig config, const DataSet& data, const TrainState& state) {
  config.precision = std::is_same_v<Real, float> ? Precision::float32 : Precision::float64;
  Expected e;
  EngineInternals internals;
  internals.observe = [&](const IterationView& view) {
    const auto flat = [](const Matrix<double>& m) {
      return std::vector<double>(m.view().flat().begin(), m.view().flat().end());
    };
    e.z0 = flat(view.evidence.draws.z);
    e.log_p0 = view.evidence.log_p0;
    e.grad_p0 = flat(view.evidence.grad_p0);
    e.z = flat(view.evidence.refined.z);
    e.value = view.evidence.refined.value;
    const auto gradient = std::get<std::span<const Real>>(view.gradient);
    e.gradient.assign(gradient.begin(), gradient.end());
    e.tensors.assign(view.tensors.begin(), view.tensors.end());
  };
  const auto engine = make_cpu_engine(config, data, {}, std::move(internals));
  engine->restore(converted<Real>(state));
  engine->train(1, e.metrics);
  e.step_size = engine->step_size();
  return e;
}

// √G after the first iteration of RMSProp is |gradient|; after Adam's, its first moment is a tenth of the gradient.
inline std::vector<double> gradient_of(const TrainState& before, const TrainState& after, const Tensor& tensor,
                                       OptimizerKind optimizer) {
  const auto find = [](const TrainState& state, const std::string& name) { return values_of(array_of(state, name)); };
  if (optimizer == OptimizerKind::adam) {
    std::vector<double> first = find(after, "optimizer.first." + tensor.name);
    for (double& x : first) x *= 10;
    return first;
  }
  std::vector<double> squared = find(after, "optimizer.second." + tensor.name);
  const std::vector<double> from = find(before, tensor.name), to = find(after, tensor.name);
  for (std::size_t i = 0; i < squared.size(); ++i) squared[i] = std::copysign(std::sqrt(squared[i]), to[i] - from[i]);
  return squared;
}

inline std::string name_of(const PathOptions& path) {
  if (path.kind == PathKind::products) return "products";
  return path.kind == PathKind::streamed ? "streamed" : "registers, " + std::to_string(path.chains) + " chains";
}

inline const std::vector<PathOptions> in_registers = {{PathKind::registers, 8}, {PathKind::registers, 16}};
inline const std::vector<PathOptions> streamed = {{PathKind::streamed}};
inline const std::vector<PathOptions> by_products = {{PathKind::products}};

class CudaIteration : public CudaTest {
 protected:
  // By each of the paths, all of which are to be of one kind.
  void compare(const Case& c, const std::vector<PathOptions>& paths, const Tolerances& tolerance,
               const std::string& expected_path) {
    SCOPED_TRACE(c.name);
    const DataSet data = made_up_data(c.config.model.kind, 1200, c.pixels);
    std::optional<Expected> expected;  // the same for all
    for (const PathOptions& path : paths) {
      SCOPED_TRACE(name_of(path));
      Runs runs(c.config, data, {c.config.seed}, path);
      ASSERT_NE(runs.path().find(expected_path), std::string::npos) << runs.path();
      TrainState start = runs.save(0);
      if (c.start != Start::drawn) {
        place(start, c);
        runs.restore(start, 0);
      }
      if (!expected) expected = by_cpu<double>(c.config, data, start);
      compare(c.config, runs, start, *expected, tolerance);
    }
  }

  // One iteration from `start`: what it learned, and its figures.
  static TrainMetrics compare_learned(const TrainConfig& config, Runs& runs, const TrainState& start,
                                      const Expected& expected, const Tolerances& tolerance) {
    TrainMetrics metrics;
    runs.train(1, {&metrics, 1});
    if (config.objective->refines()) {
      EXPECT_NEAR(runs.step_size(0) / expected.step_size, 1, tolerance.step_size);
      EXPECT_NEAR(metrics.acceptance.mean(), expected.metrics.acceptance.mean(), tolerance.acceptance);
      EXPECT_NEAR(metrics.vcd.mean() / expected.metrics.vcd.mean(), 1, tolerance.vcd);
    }
    EXPECT_NEAR(metrics.elbo.mean() / expected.metrics.elbo.mean(), 1, tolerance.elbo);
    const TrainState end = runs.save(0);
    EXPECT_FALSE(expected.tensors.empty());
    for (const Tensor& tensor : expected.tensors) {
      const auto from = expected.gradient.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
      const std::vector<double> gradient(from, from + static_cast<std::ptrdiff_t>(tensor.size()));
      EXPECT_LT(relative_error(gradient, gradient_of(start, end, tensor, config.optimizer)),
                tensor.name.starts_with("decoder") ? tolerance.model : tolerance.encoder)
          << tensor.name;
    }
    return metrics;
  }

  // The same, and the chains.
  static void compare(const TrainConfig& config, Runs& runs, const TrainState& start, const Expected& expected,
                      const Tolerances& tolerance) {
    compare_learned(config, runs, start, expected, tolerance);
    const cuda::RunsProbe::State probe = cuda::RunsProbe(runs).state(0);
    EXPECT_LT(relative_error(expected.z0, probe.z0), tolerance.z0);
    EXPECT_LT(relative_error(expected.log_p0, probe.log_p0), tolerance.log_p);
    EXPECT_LT(relative_error(expected.grad_p0, probe.grad_p0), tolerance.gradient);
    if (!config.objective->refines()) return;
    EXPECT_LT(relative_error(expected.z, probe.z), tolerance.refined);
    EXPECT_LT(relative_error(expected.value, probe.value), tolerance.log_p);
  }
};

}  // namespace hone::test
