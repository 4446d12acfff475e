// One iteration on the device against the cpu engine in double, by every way of executing it.

#include "hone/engine/cpu/iteration.hpp"
#include "tests/cuda/support.cuh"

namespace hone::test {
namespace {

using cuda::PathOptions;
using cuda::Runs;

struct Case {
  std::string name;
  TrainConfig config;
  int pixels = 101;
  bool wide = false;  // q's deviations are raised: small ones make large terms of its gradient that cancel
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ModelKind model : {ModelKind::vae, ModelKind::logistic_mf, ModelKind::gaussian_mf, ModelKind::poisson_mf})
    for (const ObjectiveKind kind :
         {ObjectiveKind::kl, ObjectiveKind::hoffman, ObjectiveKind::vcd, ObjectiveKind::li2017})
      all.push_back(
          {"model " + std::to_string(static_cast<int>(model)) + ", objective " + std::to_string(static_cast<int>(kind)),
           config_of(model, kind)});
  const auto add = [&](const std::string& name, auto change, int pixels = 101) {
    TrainConfig config = config_of(ModelKind::vae, ObjectiveKind::vcd);
    change(config);
    all.push_back({name, config, pixels});
  };
  add("tanh", [](TrainConfig& c) { c.model.activation = Activation::tanh; });
  add("softplus", [](TrainConfig& c) { c.model.activation = Activation::softplus; });
  add("one hidden layer", [](TrainConfig& c) { c.model.hidden = {65}; });
  add("three hidden layers", [](TrainConfig& c) { c.model.hidden = {33, 70, 19}; });
  add("jitter", [](TrainConfig& c) { c.kernel.leapfrog_jitter = 3; });
  add("between", [](TrainConfig& c) { c.refine.adapt = Adapt::between; });
  add("off", [](TrainConfig& c) { c.refine.adapt = Adapt::off; });
  add("score", [](TrainConfig& c) { c.objective.first_term = FirstTerm::score; });
  add("sampled entropy", [](TrainConfig& c) { c.objective.entropy = Entropy::sampled; });
  add("large t", [](TrainConfig& c) { c.objective.estimator = Estimator::large_t; });
  add("alpha", [](TrainConfig& c) { c.objective.alpha = 0.3; });
  add("adam", [](TrainConfig& c) { c.optimizer = OptimizerKind::adam; });
  add("batch 1", [](TrainConfig& c) { c.batch = 1; });
  add("batch 1000", [](TrainConfig& c) { c.batch = 1000; });
  add("batch 1100", [](TrainConfig& c) { c.batch = 1100; });  // large tiles
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
  double z0, log_p, slope;   // q's draws; log p(x, z) and ∇_z log p(x, z)
  double refined;            // z_t
  double model, encoder;     // gradient of every tensor of the model; of q's networks, where large terms cancel
  double elbo, vcd;
  double acceptance;  // of its mean, absolute
};
// A number of tf32 is off by 5 · 10⁻⁴; far from the posterior that is enough to reject a proposal that hardly moves.
constexpr Tolerances fp32 = {2e-5, 2e-5, 2e-4, 2e-4, 2e-3, 2e-3, 2e-4, 2e-2, 2e-3};
constexpr Tolerances tf32 = {3e-3, 3e-3, 1e-1, 1e-2, 3e-2, 2e-1, 3e-3, 5e-1, 1e-1};

struct Expected {
  std::vector<double> z0, log_p0, grad_p0, z, value, gradient;
  std::vector<Tensor> tensors;
  double step_size;
  TrainMetrics metrics;
};

Expected by_cpu(TrainConfig config, const DataSet& data, const TrainState& state) {
  config.precision = Precision::float64;
  Expected e;
  EngineOptions options;
  options.observe = [&](const IterationView& view) {
    const auto flat = [](const Matrix<double>& m) {
      return std::vector<double>(m.view().flat().begin(), m.view().flat().end());
    };
    e.z0 = flat(view.evidence.draws.z);
    e.log_p0 = view.evidence.log_p0;
    e.grad_p0 = flat(view.evidence.grad_p0);
    e.z = flat(view.evidence.refined.z);
    e.value = view.evidence.refined.value;
    const auto gradient = std::get<std::span<const double>>(view.gradient);
    e.gradient.assign(gradient.begin(), gradient.end());
    e.tensors.assign(view.tensors.begin(), view.tensors.end());
  };
  const auto engine = make_cpu_engine(config, data, std::move(options));
  engine->restore(converted<double>(state));
  engine->train(1, e.metrics);
  e.step_size = engine->step_size();
  return e;
}

// √G after the first iteration of RMSProp is |gradient|; after Adam's, its first moment is a tenth of the gradient.
std::vector<double> gradient_of(const TrainState& before, const TrainState& after, const Tensor& tensor,
                                OptimizerKind optimizer) {
  const auto find = [](const TrainState& state, const std::string& name) {
    return values_of(array_of(state, name));
  };
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

class CudaIteration : public CudaTest {
 protected:
  void compare(const Case& c, const PathOptions& path, const Tolerances& tolerance, const std::string& expected_path) {
    SCOPED_TRACE(c.name + (path.clusters ? ", clusters of " + std::to_string(path.chains) : std::string(", products")));
    const DataSet data = made_up_data(c.config.model.kind, 1200, c.pixels);
    Runs runs(c.config, data, {c.config.seed}, path);
    ASSERT_NE(runs.path().find(expected_path), std::string::npos) << runs.path();
    TrainState start = runs.save(0);
    if (c.wide) {
      for (float& b : std::get<std::vector<float>>(array_of(start, "sd.bias[2]").values)) b += 3;
      runs.restore(0, start);
    }
    const Expected expected = by_cpu(c.config, data, start);
    TrainMetrics metrics;
    runs.train(1, {&metrics, 1});
    const Runs::Probe probe = runs.probe(0);
    EXPECT_LT(relative_error(expected.z0, probe.z0), tolerance.z0);
    EXPECT_LT(relative_error(expected.log_p0, probe.log_p0), tolerance.log_p);
    EXPECT_LT(relative_error(expected.grad_p0, probe.grad_p0), tolerance.slope);
    if (c.config.objective.kind != ObjectiveKind::kl) {
      EXPECT_LT(relative_error(expected.z, probe.z), tolerance.refined);
      EXPECT_LT(relative_error(expected.value, probe.value), tolerance.log_p);
      EXPECT_NEAR(runs.step_size(0) / expected.step_size, 1, 1e-5);
      EXPECT_NEAR(metrics.acceptance.mean(), expected.metrics.acceptance.mean(), tolerance.acceptance);
      EXPECT_NEAR(metrics.vcd.mean() / expected.metrics.vcd.mean(), 1, tolerance.vcd);
    }
    EXPECT_NEAR(metrics.elbo.mean() / expected.metrics.elbo.mean(), 1, tolerance.elbo);
    const TrainState end = runs.save(0);
    ASSERT_FALSE(expected.tensors.empty());
    for (const Tensor& tensor : expected.tensors) {
      const auto from = expected.gradient.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
      const std::vector<double> gradient(from, from + static_cast<std::ptrdiff_t>(tensor.size()));
      EXPECT_LT(relative_error(gradient, gradient_of(start, end, tensor, c.config.optimizer)),
                tensor.name.starts_with("decoder") ? tolerance.model : tolerance.encoder)
          << tensor.name;
    }
  }
};

TEST_F(CudaIteration, ByProductsAgainstDouble) {
  for (const Case& c : cases()) compare(c, {.clusters = false}, fp32, "one kernel a product");
}

TEST_F(CudaIteration, ByClustersAgainstDouble) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  for (const Case& c : cases())
    for (const int chains : {8, 16, 32}) {
      if (c.config.batch > 13 * chains) continue;  // they would not be resident together
      const bool fits = c.config.model.hidden.size() <= 2 && (c.pixels < 784 || chains < 32);
      compare(c, {.chains = chains}, fp32, fits ? "weights in shared memory" : "one kernel a product");
    }
}

TEST_F(CudaIteration, ByClustersOfOtherSizes) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  for (const int blocks : {2, 4, 16}) {
    SCOPED_TRACE(blocks);
    for (const ModelKind model : {ModelKind::vae, ModelKind::logistic_mf})
      compare({"model " + std::to_string(static_cast<int>(model)), config_of(model, ObjectiveKind::vcd)},
              {.chains = 8, .blocks = blocks}, fp32, "clusters of " + std::to_string(blocks) + " blocks");
  }
}

// The kernels whose weights are halves in registers: the paper's shapes, the largest that fit, odd ones. Small steps, so
// that no decision is close.
TEST_F(CudaIteration, InRegistersAgainstDouble) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  struct Shape {
    int latent;
    std::vector<int> hidden;
    int pixels, batch;
  };
  const Shape shapes[] = {{10, {200, 200}, 784, 100}, {16, {208, 208}, 896, 37}, {3, {64, 13}, 101, 37},
                          {1, {1, 1}, 1, 1},          {50, {}, 784, 100},        {64, {}, 832, 37},
                          {7, {}, 101, 37},           {1, {}, 1, 1}};
  for (const Shape& shape : shapes)
    for (const ObjectiveKind kind : {ObjectiveKind::kl, ObjectiveKind::vcd})
      for (const int chains : {8, 16, 32}) {
        const ModelKind model = shape.hidden.empty() ? ModelKind::logistic_mf : ModelKind::vae;
        TrainConfig config = config_of(model, kind);
        config.model.latent = shape.latent;
        config.model.hidden = shape.hidden;
        config.batch = shape.batch;
        config.precision = Precision::tf32;
        config.refine = {2, Adapt::off, shape.hidden.empty() ? 0.002 : 2e-5, 0.9, -1};
        const std::string name = std::to_string(shape.latent) + " dimensions, " +
                                 std::to_string(shape.hidden.size()) + " hidden layers, " +
                                 std::to_string(shape.pixels) + " pixels, objective " +
                                 std::to_string(static_cast<int>(kind));
        compare({name, config, shape.pixels, true}, {.chains = chains}, tf32, "weights in registers");
      }
}

}  // namespace
}  // namespace hone::test
