// One iteration on the device against the cpu engine in double, by every way of executing it.

#include "tests/cuda/iteration_support.cuh"

namespace hone::test {
namespace {

TEST_F(CudaIteration, ByProductsAgainstDouble) {
  for (const Case& c : cases()) compare(c, by_products, fp32, "one kernel per product");
}

// Many rows, many layers, wide ones, one block's worth and several. As halves five layers round five times.
TEST_F(CudaIteration, ByProductsOfOtherShapes) {
  struct Shape {
    std::vector<int> hidden;
    int batch;
    Tolerances tolerance = near_fp32;
    Precision precision = Precision::float32;
    int pixels = 101, latent = 3;
  };
  const Shape shapes[] = {{{64, 13}, 500},
                          {{200, 200}, 37, near_fp32, Precision::float32, 784},
                          {{300, 200}, 37, near_tf32, Precision::tf32, 784},
                          {{300, 40}, 37, near_tf32, Precision::tf32, 784, 65},
                          {{20, 17, 33, 16, 1, 30, 12}, 37},
                          {{40, 33, 50, 20, 64}, 37},
                          {{40, 33, 50, 20, 64}, 37, scaled(near_tf32, 5), Precision::tf32},
                          {{300, 40}, 2100},
                          {{1700, 1900}, 5},
                          {{1700, 1900}, 5, near_tf32, Precision::tf32},
                          {{4000, 3500}, 3, near_tf32, Precision::tf32}};
  for (const Shape& shape : shapes) {
    TrainConfig config = config_of(ModelKind::vae, by_vcd());
    config.model.hidden = shape.hidden;
    config.batch = shape.batch;
    config.precision = shape.precision;
    config.model.latent = shape.latent;
    config.refine = {2, Adapt::off, 0.3, 0.9, -1};
    compare({std::to_string(shape.hidden[0]) + " units, batch " + std::to_string(shape.batch) +
                 (shape.precision == Precision::tf32 ? ", tf32" : ", float32"),
             config, shape.pixels, Start::near},
            by_products, shape.tolerance, "one kernel per product");
  }
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
    for (const SomeObjective& objective : {by_kl(), by_vcd()}) {
      const ModelKind model = shape.hidden.empty() ? ModelKind::logistic_mf : ModelKind::vae;
      TrainConfig config = config_of(model, objective);
      config.model.latent = shape.latent;
      config.model.hidden = shape.hidden;
      config.batch = shape.batch;
      config.precision = Precision::tf32;
      config.refine = {2, Adapt::off, shape.hidden.empty() ? 0.002 : 2e-5, 0.9, -1};
      const std::string name = std::to_string(shape.latent) + " dimensions, " + std::to_string(shape.hidden.size()) +
                               " hidden layers, " + std::to_string(shape.pixels) + " pixels, objective " +
                               objective->name();
      const Case it = {name, config, shape.pixels, Start::wide};
      if (shape.batch <= 104) compare(it, in_registers, tf32, "weights in registers");
      if (shape.pixels <= 832) compare(it, streamed, tf32, "blocks alone");
    }
}

// By every way of moving, near the posterior: chains of several lengths, a single leapfrog step, step
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
      TrainConfig config = config_of(model, by_vcd());
      config.model.latent = vae ? 10 : 50;
      if (vae) config.model.hidden = {200, 200};
      config.precision = Precision::tf32;
      config.kernel = hmc({way.leapfrog, way.jitter});
      config.refine = {3, way.adapt, vae ? 1.2 : way.leapfrog == 1 ? 0.8 : 0.6, 0.9, way.adapting, 0.3};
      config.seed = way.seed;
      const Case it = {(vae ? "vae, " : "logistic-mf, ") + way.name, config, 784, Start::near};
      compare(it, in_registers, near_tf32, "weights in registers");
      compare(it, streamed, near_tf32, "blocks alone");
      compare(it, by_products, near_tf32, "one kernel per product");
    }
}

// Products one by one, whose operands are rounded: decoders that registers do not take, or are not asked to.
TEST_F(CudaIteration, InTf32AgainstDouble) {
  struct Shape {
    std::string name;
    ModelKind model;
    int latent;
    std::vector<int> hidden;
    Activation activation;
    double step_size;
    std::uint64_t seed;  // by which no decision is close
    int pixels = 101;
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
                          {"two hidden layers", vae, 3, {64, 13}, Activation::relu, 1.2, 83},
                          {"no hidden layers", logistic_mf, 7, {}, Activation::relu, 0.6, 93},
                          {"the paper's layers", vae, 10, {200, 200}, Activation::relu, 1.2, 55, 784}};
  for (const Shape& shape : shapes) {
    TrainConfig config = config_of(shape.model, by_vcd());
    config.model.latent = shape.latent;
    config.model.hidden = shape.hidden;
    config.model.activation = shape.activation;
    config.precision = Precision::tf32;
    config.refine = {3, Adapt::inside, shape.step_size, 0.9, -1, 0.3};
    config.seed = shape.seed;
    const Case c = {shape.name, config, shape.pixels, Start::near};
    compare(c, by_products, near_tf32, "one kernel per product");
  }
}

// Where some data's draws are lost, since a square is beyond float32, the others are as if they were alone: against the
// cpu engine in float32, in double there is room.
TEST_F(CudaIteration, LostDrawsAmongLiveOnes) {
  for (const SomeObjective& objective : {by_kl(), by_vcd()}) {
    TrainConfig config = config_of(ModelKind::gaussian_mf, objective);
    config.refine = {3, Adapt::off, 0.02, 0.9, -1};
    config.optimizer = OptimizerKind::adam;
    const DataSet data = made_up_data(ModelKind::gaussian_mf, 1200, 101);
    Runs runs(config, data, {config.seed});
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
    runs.restore(start, 0);
    const Expected expected = by_cpu<float>(config, data, start);
    EXPECT_GT(expected.metrics.dropped_draws, 0);
    EXPECT_LT(expected.metrics.dropped_draws, config.batch / 2);
    EXPECT_EQ(compare_learned(config, runs, start, expected, fp32).dropped_draws, expected.metrics.dropped_draws);
  }
}

// Encoders of every depth, with sizes that no tile divides, few data and many, one dimension and more than a warp has
// lanes; then the paper's, two whose products over units take several turns, dimensions of several tiles, and one too
// large for a refinement's kernel; at last data whose bits fill a word, are one more, or come in more than four parts,
// and batches that take several turns.
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
    for (const SomeObjective& objective : {by_kl(), by_vcd()})
      for (const Precision precision : {Precision::float32, Precision::tf32}) {
        TrainConfig config = config_of(ModelKind::logistic_mf, objective);
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
                std::to_string(shape.pixels) + " pixels, objective " + objective->name() +
                (precision == Precision::tf32 ? ", tf32" : ", float32");
        const bool own = shape.hidden.size() == 2 && shape.hidden[0] < 1000;
        const bool whole = own && precision == Precision::tf32 && shape.latent <= 64 && shape.pixels <= 832;
        const std::string encoder = shape.batch > 104 ? "; encoder"  // how, depends on how many clusters there are
                                    : whole           ? "; encoder and objective in the same kernel"
                                                      : "; encoder product by product";
        compare({name, config, shape.pixels, Start::near}, {PathOptions()},
                precision == Precision::tf32 ? near_tf32 : near_fp32, encoder);
      }
}

}  // namespace
}  // namespace hone::test
