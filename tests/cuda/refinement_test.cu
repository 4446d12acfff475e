// Refinements alone: what they leave invariant, that wrong ones are seen, and that trajectories run back.

#include <algorithm>

#include "hone/base/statistics.hpp"
#include "tests/cuda/support.cuh"

namespace hone::test {
namespace {

using cuda::PathKind;
using cuda::PathOptions;
using cuda::Runs;
using cuda::RunsProbe;

struct World {
  std::string name;
  ModelKind model;
  Precision precision;
  PathOptions path;
  std::string expected_path;
  double step_size;
  bool paper = false;  // the paper's layers and pixels; else odd and small
};

std::vector<World> worlds() {
  std::vector<World> all;
  const auto add = [&](const std::string& name, ModelKind model, double step_size) {
    const auto world = [&](const std::string& way, const PathOptions& path, const std::string& expected) {
      all.push_back({name + way, model, Precision::tf32, path, expected, step_size});
    };
    world(" in registers", {PathKind::registers, 8}, "in registers");
    world(" in registers, 16", {PathKind::registers, 16}, "in registers");
    world(" streaming", {PathKind::streamed}, "blocks alone");
    world(" by products", {PathKind::products}, "per product");
    all.back().precision = Precision::float32;
    world(" by products, tf32", {PathKind::products}, "per product");
  };
  add("vae", ModelKind::vae, 0.3);
  add("logistic-mf", ModelKind::logistic_mf, 0.25);
  return all;
}

// The same, plus the paper's shapes.
std::vector<World> with_paper(std::vector<World> all) {
  const std::size_t count = all.size();
  for (std::size_t i = 0; i < count; ++i) {
    World world = all[i];
    world.name += ", the paper's shape";
    world.paper = true;
    world.step_size = 0.01;
    all.push_back(world);
  }
  return all;
}

bool by_products(const World& world) { return world.path.kind == PathKind::products; }

// A model, pairs (z, x) drawn from it, and runs that hold it and those data. Given x, z is a draw of the posterior.
class CudaRefinement : public CudaTest {
 protected:
  static constexpr int batch = 104, batches = 100;

  struct Made {
    TrainConfig config = TrainConfig::paper();
    std::unique_ptr<SimulatedData> joint;  // which the runs refer to
    std::unique_ptr<Runs> runs;
    int dimension() const { return config.model.latent; }
    std::span<const double> points(int i) const {
      const auto size = static_cast<std::size_t>(batch) * static_cast<std::size_t>(dimension());
      return std::span<const double>(joint->z.view().flat()).subspan(static_cast<std::size_t>(i) * size, size);
    }
  };

  static Made make(const World& world, int steps, int data = batch) {
    TrainConfig config = config_of(world.model, by_vcd());
    const bool vae = world.model == ModelKind::vae;
    if (world.paper) config.model.latent = vae ? 10 : 50;
    if (world.paper && vae) config.model.hidden = {200, 200};
    config.precision = world.precision;
    config.batch = batch;
    config.baseline = LatentBaseline::none;
    config.refine = {steps, Adapt::off, world.step_size, 0.9, -1};
    const DataSet any = made_up_data(world.model, 200, world.paper ? 784 : 101);
    Runs maker(config, any, {1}, world.path);
    TrainState state = maker.save(0);
    if (!vae)  // its weights start too small for data to tell anything of z
      for (float& value : std::get<std::vector<float>>(array_of(state, "decoder.weight[0]").values)) value *= 100;
    maker.restore(state, 0);
    Made made{config, std::make_unique<SimulatedData>(maker.simulate(data, 0)), nullptr};
    made.runs = std::make_unique<Runs>(config, made.joint->data, std::vector<std::uint64_t>{1}, world.path);
    EXPECT_NE(made.runs->path().find(world.expected_path), std::string::npos) << made.runs->path();
    made.runs->restore(state, 0);
    return made;
  }

  // How far the refined draws' moments are from those of the draws, in standard errors: the worst of all z, z² and
  // log p(x, z). `plant` sees the numbers and ∇ log p at the points of every batch.
  using Plant = std::function<void(RunsProbe::DrawnNumbers&, const std::vector<double>& gradient)>;
  struct Deviation {
    double worst, acceptance;
  };
  static Deviation deviation(const World& world, int steps, const Plant& plant = {}) {
    const Made made = make(world, steps, batch * batches);
    const int dimension = made.dimension();
    std::vector<Moments> moments(2 * dimension + 1);
    Moments acceptance;
    for (int i = 0; i < batches; ++i) {
      const auto z0 = made.points(i);
      const auto iteration = static_cast<std::uint32_t>(i) + 1;
      std::function<void(RunsProbe::DrawnNumbers&)> planted;
      if (plant) {
        const std::vector<double> gradient = RunsProbe(*made.runs).refine(iteration, i * batch, z0).grad_p0;
        planted = [&plant, gradient](RunsProbe::DrawnNumbers& numbers) { plant(numbers, gradient); };
      }
      const RunsProbe::State end = RunsProbe(*made.runs).refine(iteration, i * batch, z0, planted);
      for (int chain = 0; chain < batch; ++chain) {
        for (int d = 0; d < dimension; ++d) {
          const double from = z0[chain * dimension + d], to = end.z[chain * dimension + d];
          moments[d].add(to - from);
          moments[dimension + d].add(to * to - from * from);
        }
        moments.back().add(end.value[chain] - end.log_p0[chain]);
        acceptance.add(end.acceptance[chain] / steps);
      }
    }
    double worst = 0;
    for (const Moments& m : moments) worst = std::max(worst, std::abs(m.mean()) / m.estimate().se);
    return {worst, acceptance.mean()};
  }

  // Leapfrog steps in double with gradients asked for one by one; what is known of the last point.
  static RunsProbe::State follow(const Made& made, double step_size, std::vector<double>& z,
                                 std::vector<double>& momentum) {
    const auto kick = [&](const RunsProbe::State& here) {
      for (std::size_t i = 0; i < z.size(); ++i) momentum[i] += 0.5 * step_size * here.grad_p0[i];
    };
    RunsProbe::State here = RunsProbe(*made.runs).refine(1, 0, z);
    for (int leap = 0; leap < made.config.kernel->as_hmc()->leapfrog; ++leap) {
      kick(here);
      for (std::size_t i = 0; i < z.size(); ++i) z[i] += step_size * momentum[i];
      here = RunsProbe(*made.runs).refine(1, 0, z);
      kick(here);
    }
    return here;
  }
};

TEST_F(CudaRefinement, LeavesThePosteriorInvariant) {
  for (const World& world : worlds()) {
    if (!by_products(world) && !has_clusters()) continue;
    SCOPED_TRACE(world.name);
    const Deviation found = deviation(world, 4);
    EXPECT_LT(found.worst, 4.5);
    EXPECT_GT(found.acceptance, 0.4);
    EXPECT_LT(found.acceptance, 0.97);
    RecordProperty(world.name, std::to_string(found.worst));
  }
}

// Faults like those that the cpu's kernels are tested with, planted through the random numbers.
TEST_F(CudaRefinement, PlantedFaultsAreSeen) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  const Plant no_metropolis = [](RunsProbe::DrawnNumbers& numbers, const std::vector<double>&) {
    std::ranges::fill(numbers.log_uniform, -1e300);
  };
  const Plant stale_momentum = [](RunsProbe::DrawnNumbers& numbers, const std::vector<double>& gradient) {
    for (std::size_t i = gradient.size(); i < numbers.momentum.size(); ++i)
      numbers.momentum[i] = numbers.momentum[i - gradient.size()];
  };
  for (const World& world : worlds()) {
    if (by_products(world)) continue;
    SCOPED_TRACE(world.name);
    const Plant half_kick_turned = [&](RunsProbe::DrawnNumbers& numbers, const std::vector<double>& gradient) {
      for (std::size_t i = 0; i < gradient.size(); ++i) numbers.momentum[i] -= world.step_size * gradient[i];
    };
    EXPECT_GT(deviation(world, 4, no_metropolis).worst, 6);
    EXPECT_GT(deviation(world, 4, stale_momentum).worst, 6);
    EXPECT_GT(deviation(world, 1, half_kick_turned).worst, 6);
  }
}

// A trajectory is leapfrog with the kernel's own gradient, at both ends too: followed here in double with gradients
// asked for one by one, it ends at the same point; from there with the momentum turned round it comes back.
TEST_F(CudaRefinement, TrajectoriesRunBack) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  for (const World& world : with_paper(worlds())) {
    if (by_products(world)) continue;
    SCOPED_TRACE(world.name);
    const Made made = make(world, 1);
    const auto start = made.points(0);
    std::vector<double> momentum;
    const auto always = [&](bool backward) {
      return [&momentum, backward](RunsProbe::DrawnNumbers& numbers) {
        if (backward)
          numbers.momentum = momentum;
        else
          momentum = numbers.momentum;
        std::ranges::fill(numbers.log_uniform, -1e300);
      };
    };
    const std::vector<double> end = RunsProbe(*made.runs).refine(1, 0, start, always(false)).z;
    std::vector<double> z(start.begin(), start.end());
    follow(made, world.step_size, z, momentum);
    EXPECT_LT(relative_error(end, z), 1e-9);
    for (double& p : momentum) p = -p;
    const std::vector<double> back = RunsProbe(*made.runs).refine(1, 0, end, always(true)).z;
    EXPECT_LT(relative_error({start.begin(), start.end()}, back), 1e-9);
    EXPECT_GT(relative_error(end, back), world.paper ? 0.01 : 0.1);  // it was away
  }
}

// Halves, in registers or in a block alone, against float32 by products, from the same points with the same momenta and
// data (what each would simulate differs in single pixels). Every proposal is accepted.
TEST_F(CudaRefinement, InHalvesAsInFloat32) {
  if (!has_clusters()) GTEST_SKIP() << "skipped: no clusters on this device";
  constexpr int steps = 3;
  for (World world : with_paper(worlds())) {
    if (by_products(world)) continue;
    SCOPED_TRACE(world.name);
    world.step_size = 0.01;
    World exact = world;
    exact.precision = Precision::float32;
    exact.path = {PathKind::products};
    exact.expected_path = "per product";
    const Made expected = make(exact, 1), other = make(world, steps);
    Runs found(other.config, expected.joint->data, {1}, world.path);
    found.restore(other.runs->save(0), 0);
    std::vector<double> momenta;
    const auto always = [&](RunsProbe::DrawnNumbers& numbers) {
      momenta = numbers.momentum;
      std::ranges::fill(numbers.log_uniform, -1e300);
    };
    const RunsProbe::State b = RunsProbe(found).refine(1, 0, expected.points(0), always),
                           start = RunsProbe(*expected.runs).refine(1, 0, expected.points(0));
    std::vector<double> z(expected.points(0).begin(), expected.points(0).end());
    RunsProbe::State end;
    for (int step = 0; step < steps; ++step) {
      const auto from = momenta.begin() + static_cast<std::ptrdiff_t>(step * z.size());
      std::vector<double> momentum(from, from + static_cast<std::ptrdiff_t>(z.size()));
      end = follow(expected, world.step_size, z, momentum);
    }
    EXPECT_LT(relative_error(start.log_p0, b.log_p0), 2e-3);
    // where a unit of a ReLU is within rounding of its kink, a chain's gradient may be another
    EXPECT_LT(share_beyond(start.grad_p0, b.grad_p0, 5e-3), 0.05);
    EXPECT_LT(relative_error(start.grad_p0, b.grad_p0), 0.2);
    EXPECT_LT(relative_error(z, b.z), 2e-3);
    EXPECT_LT(relative_error(end.log_p0, b.value), 2e-3);
  }
}

// What fails on the device is an error in words.
TEST_F(CudaRefinement, TooMuchForTheDeviceIsSaid) {
  const DataSet data = made_up_data(ModelKind::vae, 150, 101);
  TrainConfig config = config_of(ModelKind::vae, by_vcd());
  std::vector<std::uint64_t> seeds(10'000);
  config.model.encoder_hidden = {2000, 2000};
  try {
    const Runs runs(config, data, std::move(seeds));
    FAIL() << "ten thousand runs fit the device";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fewer runs side by side"), std::string::npos) << error.what();
  }
  Runs small(config_of(ModelKind::vae, by_vcd()), data, {1});  // the device still works
  TrainMetrics metrics;
  small.train(2, {&metrics, 1});
  EXPECT_EQ(small.failure(0), "");
}

__global__ void stop_the_device() { __trap(); }

TEST_F(CudaRefinement, ALostDeviceIsSaid) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto lose = [] {
    const DataSet data = made_up_data(ModelKind::vae, 150, 101);
    const auto engine = make_cuda_engine(config_of(ModelKind::vae, by_vcd()), data);
    TrainMetrics metrics;
    engine->train(2, metrics);
    stop_the_device<<<1, 1>>>();
    try {
      engine->train(2, metrics);
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(3);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(lose(), testing::ExitedWithCode(3), "CUDA, .*: ");
}

}  // namespace
}  // namespace hone::test
