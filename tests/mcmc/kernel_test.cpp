#include "hone/mcmc/kernel.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/target/density.hpp"
#include "hone/target/toys.hpp"
#include "tests/support/methods.hpp"

namespace hone {
namespace {

struct Batch {
  Batch(const Target& target, int count, double spread = 1) : chains(target.dimension(), count) {
    PhiloxSource(3).normals({Purpose::start}, chains.z.view().flat());
    for (double& x : chains.z.view().flat()) x *= spread;
    target.evaluate(chains.z, Want::both, chains.value, chains.gradient);
  }
  Chains chains;
};

const test::SomeKernel kernels[] = {test::hmc({5, 0}), test::hmc({5, 4}), test::hmc({5, 4, StepSizes::varied}),
                                    test::mala(), test::random_walk()};

// A kernel keeps the chains' values and gradients up to date.
TEST(Kernels, KeepValueAndGradientOfThePoint) {
  const auto target = make_toy(Toy::banana);
  const PhiloxSource random(4);
  for (const test::SomeKernel& given : kernels) {
    Batch batch(*target, 50);
    const auto kernel = given->clone();
    for (std::uint32_t step = 0; step < 5; ++step)
      kernel->step(*target, {.random = random, .iteration = 1, .step = step, .step_size = 0.3}, batch.chains.view());
    std::vector<double> value(50);
    Matrix<double> gradient(2, 50);
    target->evaluate(batch.chains.z, Want::both, value, gradient);
    int moved = 0;
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(batch.chains.value[i], value[i]);
      if (wants_gradient(kernel->wants())) {
        EXPECT_EQ(batch.chains.gradient(1, i), gradient(1, i));
      }
      moved += batch.chains.outcome[i] == Outcome::accepted;
    }
    EXPECT_GT(moved, 5);
  }
}

// The usual BFMI, E[(ΔE)²] / Var(E) over a chain's energies with fresh momenta, is D / (D/2 + Var log p) once the chain
// has arrived: for independent logistic coordinates, in whose tails the density is wider than a Gaussian's.
TEST(Kernels, TheEnergyMovesByTheMomentaAlone) {
  constexpr int d = 4, count = 2000, burn_in = 100, kept = 50;
  const DensityTarget target(d, [](std::span<const double> z, std::span<double> gradient) {
    double sum = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      sum -= z[i] + 2 * std::log1p(std::exp(-z[i]));
      gradient[i] = 2 / (1 + std::exp(z[i])) - 1;
    }
    return sum;
  });
  const PhiloxSource random(4);
  Batch batch(target, count);
  const auto kernel = std::make_unique<Hmc>(HmcConfig{10, 4});
  std::vector<double> energy(count), momentum(d);
  Moments jump, energies, log_p;
  for (std::uint32_t step = 0; step < burn_in + kept; ++step) {
    for (int c = 0; c < count && step >= burn_in; ++c) {
      random.normals({Purpose::momentum, 1, static_cast<std::uint32_t>(c), step}, momentum);
      double now = -batch.chains.value[c];
      for (const double p : momentum) now += 0.5 * square(p);
      if (step > burn_in) jump.add(square(now - energy[c]));
      energy[c] = now;
      energies.add(now);
      log_p.add(batch.chains.value[c]);
    }
    kernel->step(target, {.random = random, .iteration = 1, .step = step, .step_size = 0.15}, batch.chains.view());
  }
  const double usual = jump.mean() / energies.variance(), ours = d / (0.5 * d + log_p.variance());
  EXPECT_NEAR(usual, ours, 0.02 * ours);
  EXPECT_LT(ours, 0.9);
}

TEST(Kernels, AChainDoesNotDependOnItsNeighbours) {
  const auto target = make_toy(Toy::mixture);
  const PhiloxSource random(4);
  for (const test::SomeKernel& given : kernels)
    for (const int count : {12, 5000}) {  // many: more than one block of hmc
      Batch together(*target, count), apart(*target, count);
      given->clone()->step(*target, {.random = random, .iteration = 1, .step = 0, .step_size = 0.3},
                           together.chains.view());
      const auto kernel = given->clone();
      for (int i = 0; i < count; ++i)
        kernel->step(*target, {.random = random, .iteration = 1, .step = 0, .step_size = 0.3},
                     apart.chains.view().range(i, i + 1));
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(together.chains.z(0, i), apart.chains.z(0, i));
        EXPECT_EQ(together.chains.acceptance[i], apart.chains.acceptance[i]);
      }
    }
}

// Counts evaluations of a point's value and gradient.
class CountingTarget final : public Target {
 public:
  int dimension() const override { return 1; }
  mutable int values = 0, gradients = 0;

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    for (int i = 0; i < z.cols(); ++i) {
      if (wants_value(want)) value[i] = -0.5 * square(z(0, i)), ++values;
      if (wants_gradient(want)) gradient(0, i) = -z(0, i), ++gradients;
    }
  }
};

TEST(Hmc, ATrajectoryOfLStepsCostsLGradientsAndOneValue) {
  const CountingTarget target;
  Batch batch(target, 7);
  target.values = target.gradients = 0;
  Hmc kernel({5});
  kernel.step(target, {.random = PhiloxSource(1), .iteration = 1, .step = 0, .step_size = 0.3}, batch.chains.view());
  EXPECT_EQ(target.gradients, 7 * 5);
  EXPECT_EQ(target.values, 7);
}

TEST(Hmc, JitteredLengthsAreUniform) {
  const CountingTarget target;
  constexpr int count = 20000;
  Batch batch(target, count);
  target.values = target.gradients = 0;
  Hmc kernel({5, 4});  // 1 … 9: mean 5, variance 60 / 9
  kernel.step(target, {.random = PhiloxSource(1), .iteration = 1, .step = 0, .step_size = 0.3}, batch.chains.view());
  EXPECT_EQ(target.values, count);
  EXPECT_NEAR(target.gradients / double(count), 5, 4 * std::sqrt(60.0 / 9 / count));
}

// Exact draws of a skew density stay exact: moments of z_t are those of z0, whatever step sizes were drawn.
TEST(Hmc, VariedStepSizesLeaveTheTargetInvariant) {
  const DensityTarget target(1, [](std::span<const double> z, std::span<double> gradient) {  // log of an exponential
    gradient[0] = 1 - std::exp(z[0]);
    return z[0] - std::exp(z[0]);
  });
  constexpr int count = 200000;
  Chains chains(1, count);
  PhiloxSource(8).uniforms({Purpose::draw}, chains.z.view().flat());
  for (double& x : chains.z.view().flat()) x = std::log(-std::log(x));
  target.evaluate(chains.z, Want::both, chains.value, chains.gradient);
  const Matrix<double> start = chains.z;
  Hmc kernel({5, 4, StepSizes::varied});
  for (std::uint32_t step = 0; step < 3; ++step)
    kernel.step(target, {.random = PhiloxSource(9), .iteration = 1, .step = step, .step_size = 0.9}, chains.view());
  const auto expect_same = [&](auto&& h) {
    double sum = 0, squares = 0;
    for (int i = 0; i < count; ++i) {
      const double difference = h(chains.z(0, i)) - h(start(0, i));
      sum += difference;
      squares += difference * difference;
    }
    EXPECT_LT(std::abs(sum), 4 * std::sqrt(squares));
  };
  expect_same([](double x) { return x; });
  expect_same([](double x) { return x * x; });
  expect_same([](double x) { return std::exp(x); });
  expect_same([](double x) { return x < -4 ? 1.0 : 0.0; });
}

// Where ε is twenty times too large, chains with a fixed ε never move; with a varied ε they do.
TEST(Hmc, VariedStepSizesFreeStuckChains) {
  const DensityTarget stiff(1, [](std::span<const double> z, std::span<double> gradient) {
    gradient[0] = -400 * z[0];
    return -200 * z[0] * z[0];
  });
  for (const StepSizes sizes : {StepSizes::fixed, StepSizes::varied}) {
    Batch batch(stiff, 200, 0.05);
    const Matrix<double> start = batch.chains.z;
    Hmc kernel({5, 4, sizes});
    for (std::uint32_t step = 0; step < 100; ++step)
      kernel.step(stiff, {.random = PhiloxSource(2), .iteration = 1, .step = step, .step_size = 2},
                  batch.chains.view());
    int moved = 0;
    for (int i = 0; i < 200; ++i) moved += batch.chains.z(0, i) != start(0, i);
    if (sizes == StepSizes::fixed) {
      EXPECT_LT(moved, 20);
    } else {
      EXPECT_GT(moved, 190);  // a step that is small enough comes once in 16
    }
  }
}

TEST(FindStepSize, GivesTheAcceptanceThatItAimsAt) {
  const auto target = make_toy(Toy::banana);
  Batch batch(*target, 4000);
  Team team(2);
  const Hmc kernel({5, 4});
  for (const double begin : {1e-3, 30.0}) {
    const double size = find_step_size(*target, kernel, batch.chains, begin, 0.8, PhiloxSource(5), team);
    Refiner refiner(kernel, {.steps = 1, .adapt = Adapt::off, .step_size = size, .acceptance = 0.8}, team);
    Chains copies = batch.chains;
    EXPECT_NEAR(refiner.refine(*target, copies.view(), 4000, 7, PhiloxSource(6)).acceptance, 0.8, 0.03) << begin;
  }
}

// Leapfrog on −½ z² is exactly solvable: with ε = 2 sin(φ/2) a step turns phase space by φ (on an ellipse), so that
// L steps with L φ = 2π come back to the start and are accepted for sure.
TEST(Hmc, AFullTurnReturnsToTheStart) {
  const CountingTarget target;
  Batch batch(target, 20);
  const Matrix<double> start = batch.chains.z;
  const int length = 12;
  const double step_size = 2 * std::sin(std::numbers::pi / length);
  Hmc kernel({length});
  kernel.step(target, {.random = PhiloxSource(1), .iteration = 1, .step = 0, .step_size = step_size},
              batch.chains.view());
  for (int i = 0; i < 20; ++i) {
    EXPECT_NEAR(batch.chains.z(0, i), start(0, i), 1e-12);
    EXPECT_NEAR(batch.chains.acceptance[i], 1, 1e-12);
    EXPECT_EQ(batch.chains.outcome[i], Outcome::accepted);
  }
}

TEST(Kernels, ANonFiniteProposalIsACountedRejection) {
  // Nothing beyond |z| = 1: −∞, a NaN or an exception.
  const DensityTarget walls(1, [](std::span<const double> z, std::span<double> gradient) {
    gradient[0] = 0;
    if (z[0] > 1) return std::nan("");
    if (z[0] < -1) throw std::domain_error("outside");
    return 0.0;
  });
  Team team(1);
  for (const test::SomeKernel& given : kernels) {
    Batch batch(walls, 200, 0.2);
    Refiner refiner(*given, {.steps = 6, .adapt = Adapt::off, .step_size = 0.7, .acceptance = 0.7}, team);
    const Refinement result = refiner.refine(walls, batch.chains.view(), 200, 1, PhiloxSource(9));
    EXPECT_GT(result.nonfinite, 100);
    for (int i = 0; i < 200; ++i) EXPECT_LE(std::abs(batch.chains.z(0, i)), 1);
  }
}

TEST(Refiner, TwoThreadsGiveTheSameBits) {
  const auto target = make_toy(Toy::banana);
  for (const Adapt adapt : {Adapt::inside, Adapt::between, Adapt::off})
    for (const test::SomeKernel& given : kernels) {
      std::vector<Matrix<double>> results;
      std::vector<double> step_sizes;
      for (const int threads : {1, 2, 3}) {
        Team team(threads);
        Refiner refiner(*given, {.steps = 4, .adapt = adapt, .step_size = 0.25, .acceptance = 0.7}, team);
        Batch batch(*target, 23);
        for (std::uint32_t it = 1; it <= 3; ++it) refiner.refine(*target, batch.chains.view(), 23, it, PhiloxSource(5));
        results.push_back(batch.chains.z);
        step_sizes.push_back(refiner.step_size());
      }
      for (int other = 1; other < 3; ++other) {
        EXPECT_EQ(step_sizes[0], step_sizes[other]);
        for (int i = 0; i < 23; ++i) EXPECT_EQ(results[0](1, i), results[other](1, i));
      }
    }
}

// z → −z: leaves a symmetric target invariant, and counts its own instances.
class Mirror final : public Kernel {
 public:
  explicit Mirror(int* clones) : clones_(clones) {}
  std::unique_ptr<Kernel> clone() const override {
    ++*clones_;
    return std::make_unique<Mirror>(clones_);
  }
  Want wants() const override { return Want::value; }
  void step(const Target&, const Move&, const ChainsView& chains) override {
    for (int c = 0; c < chains.count(); ++c) {
      for (double& x : chains.z.column(c)) x = -x;
      chains.acceptance[c] = 1;
      chains.outcome[c] = Outcome::accepted;
    }
  }

 private:
  int* clones_;
};

TEST(Refiner, RunsAKernelOfTheCallersOwnAClonePerThread) {
  const CountingTarget target;
  for (const int threads : {1, 3}) {
    Batch batch(target, 20);
    const Matrix<double> start = batch.chains.z;
    int clones = 0;
    Team team(threads);
    Refiner refiner(Mirror(&clones), {.steps = 3, .adapt = Adapt::off, .step_size = 0.1, .acceptance = 0.7}, team);
    EXPECT_EQ(clones, threads);
    EXPECT_EQ(refiner.wants(), Want::value);
    const Refinement result = refiner.refine(target, batch.chains.view(), 20, 1, PhiloxSource(1));
    EXPECT_EQ(result.acceptance, 1);
    EXPECT_EQ(result.proposals, 60);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(batch.chains.z(0, i), -start(0, i));
  }
}

// A clone of a used kernel behaves like a new one: scratch memory carries nothing over.
TEST(Kernels, ACloneGivesTheSameBits) {
  const auto target = make_toy(Toy::banana);
  const PhiloxSource random(4);
  for (const test::SomeKernel& given : kernels) {
    const auto used = given->clone();
    Batch other(*target, 70), first(*target, 31), second(*target, 31);
    used->step(*target, {.random = random, .iteration = 9, .step = 0, .step_size = 0.2}, other.chains.view());
    used->clone()->step(*target, {.random = random, .iteration = 1, .step = 0, .step_size = 0.3}, first.chains.view());
    used->step(*target, {.random = random, .iteration = 1, .step = 0, .step_size = 0.3}, second.chains.view());
    EXPECT_TRUE(std::ranges::equal(first.chains.z.view().flat(), second.chains.z.view().flat()));
    EXPECT_EQ(first.chains.value, second.chains.value);
    EXPECT_EQ(used->wants(), given->wants());
    EXPECT_EQ(used->evaluations_per_step(), given->as_hmc() ? given->as_hmc()->leapfrog : 1);
  }
}

TEST(Refiner, TheStepSizeFindsTheAcceptanceItAimsAt) {
  const auto target = make_toy(Toy::gaussian);
  Team team(1);
  for (const Adapt adapt : {Adapt::inside, Adapt::between}) {
    Refiner refiner(Hmc(), {.steps = 3, .adapt = adapt, .step_size = 0.05, .acceptance = 0.7}, team);
    Batch batch(*target, 40);
    double acceptance = 0;
    for (std::uint32_t it = 1; it <= 3000; ++it) {
      const double last = refiner.refine(*target, batch.chains.view(), 40, it, PhiloxSource(5)).acceptance;
      if (it > 1000) acceptance += last / 2000;
    }
    EXPECT_NEAR(acceptance, 0.7, 0.02);
    EXPECT_GT(refiner.step_size(), 0.2);
  }
}

TEST(Refiner, AimsAtTheKernelsOwnAcceptanceUnlessToldOtherwise) {
  const auto target = make_toy(Toy::gaussian);
  Team team(1);
  const auto step_size_after = [&](const Kernel& kernel, const RefineConfig& config) {
    Batch batch(*target, 40);
    Refiner refiner(kernel, config, team);
    for (std::uint32_t it = 1; it <= 20; ++it) refiner.refine(*target, batch.chains.view(), 40, it, PhiloxSource(5));
    return refiner.step_size();
  };
  for (const test::SomeKernel& kernel : kernels) {
    const double own = kernel->default_acceptance();
    EXPECT_EQ(step_size_after(*kernel, {}), step_size_after(*kernel, {.acceptance = own}));
    EXPECT_NE(step_size_after(*kernel, {}), step_size_after(*kernel, {.acceptance = own + 0.1}));
  }
}

TEST(Refiner, OffAndOneInsideStepLeaveTheStepSizeAlone) {
  const auto target = make_toy(Toy::gaussian);
  Team team(1);
  Batch batch(*target, 4);
  Refiner off(Hmc(), {.steps = 3, .adapt = Adapt::off, .step_size = 0.05, .acceptance = 0.7}, team),
      single(Hmc(), {.steps = 1, .adapt = Adapt::inside, .step_size = 0.05, .acceptance = 0.7}, team);
  off.refine(*target, batch.chains.view(), 4, 1, PhiloxSource(5));
  single.refine(*target, batch.chains.view(), 4, 1, PhiloxSource(5));
  EXPECT_EQ(off.step_size(), 0.05);
  EXPECT_EQ(single.step_size(), 0.05);
}

TEST(Refiner, RefusesImpossibleSettings) {
  Team team(1);
  EXPECT_THROW(Refiner(Hmc(), {.steps = 0, .adapt = Adapt::off, .step_size = 0.1, .acceptance = 0.7}, team),
               InputError);
  EXPECT_THROW(Refiner(Hmc(), {.steps = 3, .adapt = Adapt::off, .step_size = 0, .acceptance = 0.7}, team), InputError);
  for (const double acceptance : {1.0, 0.0, -0.5})
    EXPECT_THROW(Refiner(Hmc(), {.adapt = Adapt::off, .acceptance = acceptance}, team), InputError);
  EXPECT_THROW(Hmc({0, 0}), InputError);
  EXPECT_THROW(Hmc({5, 5}), InputError);
}

}  // namespace
}  // namespace hone
