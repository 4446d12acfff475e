// One iteration on the device against the cpu engine in double, by every way of executing it.

#include "hone/engine/cpu/iteration.hpp"

#include <optional>

#include "tests/cuda/support.cuh"

namespace hone::test {
namespace {

using cuda::PathKind;
using cuda::PathOptions;
using cuda::Runs;

enum class Start {
  drawn,  // as a run starts: far from the posterior
  wide,   // with q's deviations raised: small ones make large terms of its gradient that cancel
  near,   // with weights so small that chains move in earnest and some proposals are rejected; no ReLU is near its kink
};

struct Case {
  std::string name;
  TrainConfig config;
  int pixels = 101;
  Start start = Start::drawn;
};

void place(TrainState& state, const Case& c) {
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
  add("batch 1100", [](TrainConfig& c) { c.batch = 1100; });  // q's networks by products
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
  double z0, log_p, slope;  // q's draws; log p(x, z) and ∇_z log p(x, z)
  double refined;           // z_t
  double model, encoder;    // gradient of every tensor of the model; of q's networks, where large terms cancel
  double elbo, vcd;
  double acceptance;  // of its mean, absolute
  double step_size;   // a decision of 37 is worth 10⁻² where it follows fast, 3 · 10⁻⁴ where it does not
};
// A number of tf32 is off by 5 · 10⁻⁴; far from the posterior that is enough to reject a proposal that hardly moves.
constexpr Tolerances fp32 = {2e-5, 2e-5, 2e-4, 2e-4, 2e-3, 2e-3, 2e-4, 2e-2, 2e-3, 1e-5};
constexpr Tolerances tf32 = {3e-3, 3e-3, 1e-1, 1e-2, 3e-2, 2e-1, 3e-3, 5e-1, 1e-1, 2e-3};
// From Start::near nothing magnifies rounding.
constexpr Tolerances near_fp32 = {2e-5, 1e-5, 5e-5, 3e-5, 1e-4, 1e-4, 1e-5, 5e-4, 1e-4, 1e-5};
constexpr Tolerances near_tf32 = {3e-3, 5e-3, 5e-3, 1e-2, 2e-2, 2e-2, 2e-3, 2e-2, 1e-2, 2e-3};
constexpr Tolerances scaled(Tolerances t, double factor) {
  for (double* x :
       {&t.z0, &t.log_p, &t.slope, &t.refined, &t.model, &t.encoder, &t.elbo, &t.vcd, &t.acceptance, &t.step_size})
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
    const auto gradient = std::get<std::span<const Real>>(view.gradient);
    e.gradient.assign(gradient.begin(), gradient.end());
    e.tensors.assign(view.tensors.begin(), view.tensors.end());
  };
  const auto engine = make_cpu_engine(config, data, std::move(options));
  engine->restore(converted<Real>(state));
  engine->train(1, e.metrics);
  e.step_size = engine->step_size();
  return e;
}

// √G after the first iteration of RMSProp is |gradient|; after Adam's, its first moment is a tenth of the gradient.
std::vector<double> gradient_of(const TrainState& before, const TrainState& after, const Tensor& tensor,
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

std::string name_of(const PathOptions& path) {
  if (path.kind == PathKind::products) return "products";
  if (path.kind == PathKind::all_products) return "all products";
  return (path.kind == PathKind::teams ? "teams of " : "clusters of ") + std::to_string(path.chains);
}

const std::vector<PathOptions> all_chains = {{.chains = 8}, {.chains = 16}, {.chains = 32}};
const std::vector<PathOptions> by_teams = {{PathKind::teams, 16}, {PathKind::teams, 32}};
const std::vector<PathOptions> by_products = {{.kind = PathKind::products}, {.kind = PathKind::all_products}};
const std::vector<PathOptions> block_alone = {{.chains = 16, .blocks = 1}};

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
        runs.restore(0, start);
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
    if (config.objective.kind != ObjectiveKind::kl) {
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

 private:
  static void compare(const TrainConfig& config, Runs& runs, const TrainState& start, const Expected& expected,
                      const Tolerances& tolerance) {
    compare_learned(config, runs, start, expected, tolerance);
    const Runs::Probe probe = runs.probe(0);
    EXPECT_LT(relative_error(expected.z0, probe.z0), tolerance.z0);
    EXPECT_LT(relative_error(expected.log_p0, probe.log_p0), tolerance.log_p);
    EXPECT_LT(relative_error(expected.grad_p0, probe.grad_p0), tolerance.slope);
    if (config.objective.kind == ObjectiveKind::kl) return;
    EXPECT_LT(relative_error(expected.z, probe.z), tolerance.refined);
    EXPECT_LT(relative_error(expected.value, probe.value), tolerance.log_p);
  }
};

TEST_F(CudaIteration, ByProductsAgainstDouble) {
  for (const Case& c : cases()) compare(c, by_products, fp32, "one kernel a product");
}

TEST_F(CudaIteration, ByClustersAgainstDouble) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  for (const Case& c : cases())
    for (const int chains : {8, 16, 32}) {
      if (c.config.batch > 13 * chains) continue;  // they would not be resident together
      const bool fits = c.config.model.hidden.size() <= 2 && (c.pixels < 784 || chains < 32);
      compare(c, {{.kind = PathKind::clusters, .chains = chains}}, fp32,
              fits ? "weights in shared memory" : "one kernel a product");
    }
}

TEST_F(CudaIteration, ByClustersOfOtherSizes) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  for (const int blocks : {2, 4, 16}) {
    SCOPED_TRACE(blocks);
    for (const ModelKind model : {ModelKind::vae, ModelKind::logistic_mf})
      compare({"model " + std::to_string(static_cast<int>(model)), config_of(model, ObjectiveKind::vcd)},
              {{.chains = 8, .blocks = blocks}}, fp32, "clusters of " + std::to_string(blocks) + " blocks");
  }
}

// Teams take nearly any decoder: many blocks for few chains, few for many, some without any unit of a layer.
TEST_F(CudaIteration, ByTeamsAgainstDouble) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  for (const Case& c : cases()) compare(c, by_teams, fp32, "weights from the cache");
  struct Shape {
    std::vector<int> hidden;
    int batch, chains;
    Tolerances tolerance = near_fp32;
    Precision precision = Precision::float32;
    int blocks = 0, pixels = 101, latent = 3;
  };
  // Many chains, many layers, several rounds of a block's columns, and layers so wide that there is no room for the
  // whole of the first, as floats or at all. As halves six layers round six times; with hundreds of chains some
  // decision is close, and with thousands some ReLU is near its kink.
  const Shape shapes[] = {{{64, 13}, 500, 64},
                          {{200, 200}, 37, 16, near_fp32, Precision::float32, 1, 784},
                          {{300, 200}, 37, 16, near_tf32, Precision::tf32, 1, 784},
                          {{300, 40}, 37, 16, near_tf32, Precision::tf32, 2, 784, 65},
                          {{20, 17, 33, 16, 1, 30, 12}, 37, 16},
                          {{40, 33, 50, 20, 64}, 37, 32},
                          {{40, 33, 50, 20, 64}, 37, 32, scaled(near_tf32, 5), Precision::tf32},
                          {{300, 40}, 2100, 32},
                          {{1700, 1900}, 5, 16},
                          {{1700, 1900}, 5, 16, near_tf32, Precision::tf32},
                          {{4000, 3500}, 3, 16, near_tf32, Precision::tf32}};
  for (const Shape& shape : shapes) {
    TrainConfig config = config_of(ModelKind::vae, ObjectiveKind::vcd);
    config.model.hidden = shape.hidden;
    config.batch = shape.batch;
    config.precision = shape.precision;
    config.model.latent = shape.latent;
    config.refine = {2, Adapt::off, 0.3, 0.9, -1};
    compare({std::to_string(shape.hidden[0]) + " units, batch " + std::to_string(shape.batch) +
                 (shape.precision == Precision::tf32 ? ", tf32" : ", float32"),
             config, shape.pixels, Start::near},
            {{PathKind::teams, shape.chains, shape.blocks}}, shape.tolerance, "weights from the cache");
  }
  for (const int blocks : {1, 2, 3, 11})
    for (const ModelKind model : {ModelKind::vae, ModelKind::logistic_mf})
      compare({std::to_string(blocks) + " blocks", config_of(model, ObjectiveKind::vcd)},
              {{.kind = PathKind::teams, .chains = 16, .blocks = blocks}}, fp32,
              "teams of " + std::to_string(blocks) + " blocks");
}

// The kernels whose weights are halves, in registers or in a block alone: the paper's shapes, the largest that fit, odd
// ones, more chains than clusters could carry. Small steps, so that no decision is close.
TEST_F(CudaIteration, InHalvesAgainstDouble) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  struct Shape {
    int latent;
    std::vector<int> hidden;
    int pixels, batch;
  };
  const Shape shapes[] = {
      {10, {200, 200}, 784, 100}, {16, {208, 208}, 896, 37}, {3, {64, 13}, 101, 37}, {1, {1, 1}, 1, 1},
      {50, {}, 784, 100},         {64, {}, 832, 37},         {7, {}, 101, 37},       {1, {}, 1, 1},
      {16, {208, 208}, 832, 37},  {5, {40, 30}, 90, 1100}};
  for (const Shape& shape : shapes)
    for (const ObjectiveKind kind : {ObjectiveKind::kl, ObjectiveKind::vcd}) {
      const ModelKind model = shape.hidden.empty() ? ModelKind::logistic_mf : ModelKind::vae;
      TrainConfig config = config_of(model, kind);
      config.model.latent = shape.latent;
      config.model.hidden = shape.hidden;
      config.batch = shape.batch;
      config.precision = Precision::tf32;
      config.refine = {2, Adapt::off, shape.hidden.empty() ? 0.002 : 2e-5, 0.9, -1};
      const std::string name = std::to_string(shape.latent) + " dimensions, " + std::to_string(shape.hidden.size()) +
                               " hidden layers, " + std::to_string(shape.pixels) + " pixels, objective " +
                               std::to_string(static_cast<int>(kind));
      const Case it = {name, config, shape.pixels, Start::wide};
      if (shape.batch <= 104) compare(it, all_chains, tf32, "weights in registers");
      if (shape.pixels <= 832) compare(it, block_alone, tf32, "blocks alone");
      compare(it, by_teams, tf32, "weights from the cache");
      if (shape.batch > 1000) compare(it, {{PathKind::teams, 64}}, tf32, "64 chains each");
    }
}

// The same kernels by every way of moving, near the posterior: chains of several lengths, a single leapfrog step, step
// sizes that follow fast. The last cluster is not full.
TEST_F(CudaIteration, InHalvesByEveryWayOfMoving) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  struct Way {
    std::string name;
    int leapfrog, jitter;
    Adapt adapt;
    std::uint64_t seed;  // by which no decision is close: rounding moves none by half of its distance
    int adapting = -1;
  };
  const Way ways[] = {{"off", 5, 0, Adapt::off, 108},
                      {"inside", 5, 0, Adapt::inside, 55},
                      {"inside, after every step", 5, 0, Adapt::inside, 55, 3},
                      {"between", 5, 0, Adapt::between, 108},
                      {"jitter", 5, 3, Adapt::off, 97},
                      {"jitter down to one, inside", 5, 4, Adapt::inside, 101},
                      {"jitter, between", 3, 1, Adapt::between, 84},
                      {"one leapfrog step", 1, 0, Adapt::off, 3},
                      {"one leapfrog step, inside", 1, 0, Adapt::inside, 81},
                      {"one leapfrog step, between", 1, 0, Adapt::between, 3}};
  for (const ModelKind model : {ModelKind::vae, ModelKind::logistic_mf})
    for (const Way& way : ways) {
      const bool vae = model == ModelKind::vae;
      TrainConfig config = config_of(model, ObjectiveKind::vcd);
      config.model.latent = vae ? 10 : 50;
      if (vae) config.model.hidden = {200, 200};
      config.precision = Precision::tf32;
      config.kernel = {KernelKind::hmc, way.leapfrog, way.jitter};
      config.refine = {3, way.adapt, vae ? 1.2 : way.leapfrog == 1 ? 0.8 : 0.6, 0.9, way.adapting, 0.3};
      config.seed = way.seed;
      const Case it = {(vae ? "vae, " : "logistic-mf, ") + way.name, config, 784, Start::near};
      compare(it, all_chains, near_tf32, "weights in registers");
      compare(it, block_alone, near_tf32, "blocks alone");
      compare(it, by_teams, near_tf32, "weights from the cache");
    }
}

// Weights in shared memory and products one by one, whose operands are rounded: decoders that registers do not take, or
// are not asked to.
TEST_F(CudaIteration, InTf32AgainstDouble) {
  struct Shape {
    std::string name;
    ModelKind model;
    int latent;
    std::vector<int> hidden;
    Activation activation;
    double step_size;
    std::uint64_t seed;  // by which no decision is close
    int blocks = 0, pixels = 101;
  };
  using enum ModelKind;
  const Shape shapes[] = {{"tanh", vae, 3, {64, 13}, Activation::tanh, 1.2, 11},
                          {"softplus", vae, 3, {64, 13}, Activation::softplus, 1.2, 63},
                          {"one hidden layer", vae, 3, {65}, Activation::relu, 1.2, 22},
                          {"20 dimensions", vae, 20, {64, 13}, Activation::relu, 1.2, 28},
                          {"209 units", vae, 3, {209, 30}, Activation::relu, 1.2, 53},
                          {"gaussian", gaussian_mf, 7, {}, Activation::relu, 0.045, 35},
                          {"poisson", poisson_mf, 7, {}, Activation::relu, 0.35, 50},
                          {"65 dimensions", logistic_mf, 65, {}, Activation::relu, 0.9, 81},
                          {"4 blocks", vae, 3, {64, 13}, Activation::relu, 1.2, 83, 4},
                          {"2 blocks", logistic_mf, 7, {}, Activation::relu, 0.6, 93, 2},
                          {"16 blocks", vae, 10, {200, 200}, Activation::relu, 1.2, 55, 16, 784}};
  for (const Shape& shape : shapes) {
    TrainConfig config = config_of(shape.model, ObjectiveKind::vcd);
    config.model.latent = shape.latent;
    config.model.hidden = shape.hidden;
    config.model.activation = shape.activation;
    config.precision = Precision::tf32;
    config.refine = {3, Adapt::inside, shape.step_size, 0.9, -1, 0.3};
    config.seed = shape.seed;
    const Case c = {shape.name, config, shape.pixels, Start::near};
    compare(c, by_products, near_tf32, "one kernel a product");
    if (!has_clusters()) continue;
    std::vector<PathOptions> paths = all_chains;
    if (shape.pixels == 784) paths.pop_back();  // 32 chains have no room beside the weights
    for (PathOptions& path : paths) path.blocks = shape.blocks;
    compare(c, paths, near_tf32, "weights in shared memory");
    compare(c, by_teams, near_tf32, "weights from the cache");
  }
}

// Where some data's draws are lost, since a square is beyond float32, the others are as if they were alone: against the
// cpu engine in float32, in double there is room.
TEST_F(CudaIteration, LostDrawsAmongLiveOnes) {
  for (const ObjectiveKind kind : {ObjectiveKind::kl, ObjectiveKind::vcd})
    for (const PathOptions& path : {by_products[0], by_products[1], PathOptions{.chains = 8}, by_teams[0]}) {
      SCOPED_TRACE(name_of(path));
      TrainConfig config = config_of(ModelKind::gaussian_mf, kind);
      config.refine = {3, Adapt::off, 0.02, 0.9, -1};
      config.optimizer = OptimizerKind::adam;
      const DataSet data = made_up_data(ModelKind::gaussian_mf, 1200, 101);
      Runs runs(config, data, {config.seed}, path);
      TrainState start = runs.save(0);
      place(start, {"", config, 101, Start::near});
      const auto numbers = [&](const std::string& name) -> std::vector<float>& {
        return std::get<std::vector<float>>(array_of(start, name).values);
      };
      // data whose first pixel is large have z > 10²⁰: unit 0 sees that pixel alone, and z_0 that unit
      std::vector<float>&first = numbers("mean.weight[0]"), &second = numbers("mean.weight[1]"),
      &last = numbers("mean.weight[2]");
      for (std::size_t i = 0; i < first.size(); i += config.model.encoder_hidden[0]) first[i] = i == 0 ? 1 : 0;
      numbers("mean.bias[0]")[0] = -0.35f;
      for (int i = 0; i < config.model.encoder_hidden[1]; ++i) second[i] = i == 0 ? 1e15f : 0;
      for (int d = 0; d < config.model.latent; ++d) last[d] = d == 0 ? 1e15f : 0;
      for (std::size_t i = 1; i < second.size() / config.model.encoder_hidden[1]; ++i)
        second[i * config.model.encoder_hidden[1]] = 0;
      numbers("mean.bias[1]")[0] = 0;
      runs.restore(0, start);
      const Expected expected = by_cpu<float>(config, data, start);
      EXPECT_GT(expected.metrics.dropped_draws, 0);
      EXPECT_LT(expected.metrics.dropped_draws, config.batch / 2);
      EXPECT_EQ(compare_learned(config, runs, start, expected, fp32).dropped_draws, expected.metrics.dropped_draws);
    }
}

// Encoders of every depth, with sizes that no tile divides, few data and many, one dimension and more than a warp has
// lanes; then the paper's, two whose products over units take several turns, dimensions of several tiles, and one too
// large for kernels of its own; at last data whose bits fill a word, are one more, or come in more than four parts, and
// batches that take several turns.
TEST_F(CudaIteration, EncodersAgainstDouble) {
  struct Shape {
    std::vector<int> hidden;
    int batch, latent, pixels = 101;
  };
  std::vector<Shape> shapes;
  for (const std::vector<int>& hidden : {std::vector<int>{}, {70}, {37, 53}, {33, 70, 19}})
    for (const int batch : {1, 7, 100})
      for (const int latent : {1, 10, 50}) shapes.push_back({hidden, batch, latent});
  for (const std::vector<int>& hidden : {std::vector{1}, {5, 1}, {200, 200}, {301, 380}, {64, 500}, {1030, 1001}})
    shapes.push_back({hidden, 13, 10});
  shapes.push_back({{200, 200}, 13, 65});
  shapes.push_back({{37}, 13, 300});
  for (const int pixels : {1, 64, 65, 1100}) shapes.push_back({{37, 53}, 13, 10, pixels});
  for (const int batch : {104, 105, 250}) shapes.push_back({{37, 53}, batch, 10});
  shapes.push_back({{301, 40}, 250, 10, 1100});
  for (const Shape& shape : shapes)
    for (const ObjectiveKind kind : {ObjectiveKind::kl, ObjectiveKind::vcd})
      for (const Precision precision : {Precision::float32, Precision::tf32}) {
        TrainConfig config = config_of(ModelKind::logistic_mf, kind);
        config.model.encoder_hidden = shape.hidden;
        config.model.latent = shape.latent;
        config.batch = shape.batch;
        config.precision = precision;
        config.refine = {1, Adapt::off, 0.1, 0.9, -1};
        config.seed = 4;                         // no decision is close
        config.optimizer = OptimizerKind::adam;  // keeps the gradient itself, signs and all
        std::string name = "encoder";
        for (const int units : shape.hidden) name += " " + std::to_string(units);
        name += ", batch " + std::to_string(shape.batch) + ", " + std::to_string(shape.latent) + " dimensions, " +
                std::to_string(shape.pixels) + " pixels, objective " + std::to_string(static_cast<int>(kind)) +
                (precision == Precision::tf32 ? ", tf32" : ", float32");
        const bool own = shape.hidden.size() == 1 || (shape.hidden.size() == 2 && shape.hidden[0] < 1000);
        const bool whole = own && precision == Precision::tf32 && shape.latent <= 64 && shape.pixels <= 832;
        const std::string encoder = shape.batch > 104 ? "; encoder"  // how, depends on how many clusters there are
                                    : whole           ? "; encoder and objective in the same kernel"
                                    : own             ? "; encoder by kernels of its own"
                                                      : "; encoder product by product";
        compare({name, config, shape.pixels, Start::near}, {PathOptions()},
                precision == Precision::tf32 ? near_tf32 : near_fp32, encoder);
      }
}

}  // namespace
}  // namespace hone::test
