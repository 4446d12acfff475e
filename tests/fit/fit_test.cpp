#include "hone/fit/fit.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/target/density.hpp"
#include "hone/target/toys.hpp"
#include "tests/support/methods.hpp"
#include "tests/support/scaled_gaussian.hpp"

// Counts every allocation of this program.
namespace {
std::atomic<long> allocations = 0;
}
// Not inlined: GCC would take malloc and free for a mismatch of new and delete. std::stable_sort uses the second.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {  // of matrices
  ++allocations;
  const auto bytes = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(bytes, (size + bytes - 1) / bytes * bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace hone {
namespace {

FitConfig config_of(const test::SomeObjective& objective, const test::SomeKernel& kernel = test::hmc()) {
  FitConfig config;
  config.objective = objective;
  config.kernel = kernel;
  config.refine.adapt = Adapt::inside;
  return config;
}

TEST(Fit, AllocatesNothingWithThreadsManyDrawsAndJitter) {
  const PhiloxSource random(1);
  const auto target = make_toy(Toy::banana);
  for (const BaselineKind baseline : {BaselineKind::global, BaselineKind::leave_one_out})
    for (const FirstTerm first_term : {FirstTerm::reparameterized, FirstTerm::score}) {
      MixtureFamily q(2, 2, Covariance::full);
      q.mean(1)[0] = -1;
      FitConfig config = config_of(test::by_vcd({.first_term = first_term, .baseline = baseline}), test::hmc({5, 3}));
      config.refine.adapt = Adapt::between;
      config.draws_per_iteration = 6;
      config.threads = 2;
      Fit fit(*target, q, config, random);
      for (int i = 0; i < 2000; ++i) fit.step();  // every thread has woken up and made its scratch then
      const long before = allocations;
      for (int i = 0; i < 100; ++i) fit.step();
      EXPECT_EQ(allocations, before);
    }
}

TEST(Fit, AllocatesNothingAfterTheFirstStep) {
  const PhiloxSource random(1);
  for (const Toy toy : {Toy::gaussian, Toy::mixture, Toy::banana})
    for (const test::SomeObjective& objective : {test::by_kl(), test::by_vcd(), test::by_li2017()})
      for (const test::SomeKernel& kernel : {test::hmc(), test::mala(), test::random_walk()})
        for (const Covariance covariance : {Covariance::diagonal, Covariance::full}) {
          const auto target = make_toy(toy);
          GaussianFamily gaussian(2, covariance);
          MixtureFamily mixture(2, 2, covariance);
          mixture.mean(1)[0] = -1;
          for (Family* family : {static_cast<Family*>(&gaussian), static_cast<Family*>(&mixture)}) {
            Fit fit(*target, *family, config_of(objective, kernel), random);
            fit.step();
            const long before = allocations;
            for (int i = 0; i < 100; ++i) fit.step();
            EXPECT_EQ(allocations, before);
          }
        }
}

std::vector<double> fitted(int threads, std::uint64_t seed) {
  const auto target = make_toy(Toy::banana);
  MixtureFamily q(2, 3, Covariance::full);
  for (int k = 0; k < 3; ++k) q.mean(k)[0] = k - 1;
  FitConfig config = config_of(test::by_vcd(), test::hmc({5, 2}));
  config.draws_per_iteration = 5;
  config.threads = threads;
  const PhiloxSource random(seed);
  Fit fit(*target, q, config, random);
  for (int i = 0; i < 200; ++i) fit.step();
  return {q.parameters().begin(), q.parameters().end()};
}

TEST(Fit, SameSeedGivesTheSameBitsOnOneThreadAndOnTwo) {
  const auto first = fitted(1, 4);
  EXPECT_EQ(first, fitted(1, 4));
  EXPECT_EQ(first, fitted(2, 4));
  EXPECT_EQ(first, fitted(3, 4));
  EXPECT_NE(first, fitted(1, 5));
}

TEST(Fit, ADrawOutsideTheSupportLeavesTheGradient) {
  // A half-normal: nothing below zero, where half of q's first draws lie.
  const DensityTarget target(1, [](std::span<const double> z, std::span<double> gradient) {
    if (z[0] < 0) throw std::domain_error("negative");
    gradient[0] = -z[0];
    return -0.5 * z[0] * z[0];
  });
  for (const test::SomeObjective& objective : {test::by_kl(), test::by_vcd(), test::by_li2017()})
    for (const int draws : {1, 8}) {
      GaussianFamily q(1, Covariance::diagonal);
      FitConfig config = config_of(objective);
      config.draws_per_iteration = draws;
      const PhiloxSource random(2);
      Fit fit(target, q, config, random);
      for (int i = 0; i < 500; ++i) fit.step();
      EXPECT_GT(fit.dropped_draws(), 10);
      if (objective->refines()) {
        EXPECT_GT(fit.rejected_nonfinite(), 10);
      }
      for (const double parameter : q.parameters()) EXPECT_TRUE(std::isfinite(parameter));
    }
}

// Only draws inside the support set the step size, whatever constant log p carries, and the chains keep moving.
TEST(Fit, DrawsOutsideTheSupportLeaveTheStepSizeAlone) {
  const auto half_normal = [](double constant) {
    return DensityTarget(1, [constant](std::span<const double> z, std::span<double> gradient) {
      gradient[0] = -z[0];
      return z[0] < 0 ? -infinity : -0.5 * z[0] * z[0] + constant;
    });
  };
  for (const Adapt adapt : {Adapt::inside, Adapt::between})
    for (const int draws : {1, 64}) {
      std::vector<double> step_sizes;
      for (const double constant : {0.0, -1000.0}) {
        const auto target = half_normal(constant);
        GaussianFamily q(1, Covariance::diagonal);
        FitConfig config = config_of(test::by_vcd());
        config.refine.adapt = adapt;
        config.draws_per_iteration = draws;
        config.optimizer.rate_location = config.optimizer.rate_scale = 0;
        const PhiloxSource random(2);
        Fit fit(target, q, config, random);
        for (int i = 0; i < 4000; ++i) fit.step();
        step_sizes.push_back(fit.step_size());
      }
      EXPECT_GT(step_sizes[0], 0.05);
      EXPECT_NEAR(step_sizes[0], step_sizes[1], 1e-6 * step_sizes[0]);
    }
}

TEST(Fit, ABatchWithADroppedDrawIsTheBatchWithoutIt) {
  const DensityTarget everywhere(1, [](std::span<const double> z, std::span<double> gradient) {
    gradient[0] = -z[0];
    return -0.5 * z[0] * z[0];
  });
  const DensityTarget not_there(1, [](std::span<const double> z, std::span<double> gradient) {
    gradient[0] = -z[0];
    return z[0] == 3 ? -infinity : -0.5 * z[0] * z[0];
  });
  GaussianFamily q(1, Covariance::diagonal);
  const std::vector<double> noise = {0.5, 3, -1};  // the second draw lies outside
  const auto gradient = [&](const Target& target, const std::vector<double>& draws) {
    Evidence evidence(1, 1, static_cast<int>(draws.size()));
    for (std::size_t i = 0; i < draws.size(); ++i) {
      evidence.draws.z(0, static_cast<int>(i)) = evidence.draws.noise(0, static_cast<int>(i)) = draws[i];
      evidence.draws.weight[i] = 1.0 / static_cast<double>(draws.size());
    }
    target.evaluate(evidence.draws.z, Want::both, evidence.log_p0, evidence.grad_p0);
    drop_outside_support(evidence);
    q.log_density(evidence.draws.z, Want::both, evidence.log_q0, evidence.grad_q0);
    begin_refinement(evidence);
    end_refinement(evidence);
    q.log_density(evidence.refined.z, Want::value, evidence.log_qt, {});
    std::vector<double> result(2);
    Vcd({.entropy = Entropy::sampled, .baseline = BaselineKind::none}).add_ascent(q, evidence, result);
    return result;
  };
  const auto with = gradient(not_there, noise), without = gradient(everywhere, {0.5, -1});
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(with[i], without[i], 1e-12);
}

// One configuration serves several fits: each learns on a clone.
TEST(Fit, LeavesTheGivenObjectiveAlone) {
  const auto target = make_toy(Toy::gaussian);
  const PhiloxSource random(3);
  const FitConfig config = config_of(test::by_vcd());
  std::vector<double> parameters[2];
  for (auto& kept : parameters) {
    GaussianFamily q(2, Covariance::full);
    Fit fit(*target, q, config, random);
    for (int i = 0; i < 50; ++i) fit.step();
    kept.assign(q.parameters().begin(), q.parameters().end());
    EXPECT_NE(fit.baseline(), 0);
  }
  EXPECT_EQ(parameters[0], parameters[1]);
  EXPECT_EQ(config.objective->baseline(), 0);
}

// Follows the draws' own mean: reads nothing but z0 and what is known there.
class TowardsTheMode final : public Objective {
 public:
  std::unique_ptr<Objective> clone() const override { return std::make_unique<TowardsTheMode>(); }
  bool refines() const override { return false; }
  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override {
    EXPECT_NE(evidence.grad_q0(0, 0), 0);  // sampled unless the objective says otherwise
    family.add_pathwise(evidence.draws, evidence.grad_p0, evidence.draws.weight, gradient);
  }
};

// Without an entropy q shrinks onto the mode.
TEST(Fit, FollowsAnObjectiveOfTheCallersOwn) {
  const auto target = make_toy(Toy::gaussian);
  const PhiloxSource random(3);
  GaussianFamily q(2, Covariance::diagonal);
  q.mean()[0] = 1;
  FitConfig config = config_of(std::make_shared<TowardsTheMode>());
  config.draws_per_iteration = 16;
  Fit fit(*target, q, config, random);
  for (int i = 0; i < 5000; ++i) fit.step();
  EXPECT_EQ(fit.step().acceptance, 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(std::abs(q.mean()[i]), 0.05);
    EXPECT_LT(q.scale()[i], 0.01);
  }
}

TEST(Fit, StopsWithAClearErrorWhenAParameterIsNoLongerFinite) {
  const DensityTarget target(1, [](std::span<const double>, std::span<double> gradient) {
    gradient[0] = 1e308;
    return 0.0;
  });
  GaussianFamily q(1, Covariance::diagonal);
  FitConfig config = config_of(test::by_kl());
  config.optimizer.rate_location = 1e308;
  const PhiloxSource random(1);
  Fit fit(target, q, config, random);
  try {
    for (int i = 0; i < 10; ++i) fit.step();
    FAIL() << "the parameter stayed finite";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'mean' of q is not finite after iteration"), std::string::npos);
  }
}

TEST(Fit, RefusesImpossibleConfigurations) {
  const auto target = make_toy(Toy::gaussian);
  const PhiloxSource random(1);
  GaussianFamily q(2, Covariance::diagonal), narrow(1, Covariance::diagonal);
  MixtureFamily mixture(2, 2, Covariance::diagonal);
  const auto refuses = [&](Family& family, auto change) {
    FitConfig config;
    change(config);
    EXPECT_THROW(Fit(*target, family, config, random), InputError);
  };
  refuses(narrow, [](FitConfig&) {});
  refuses(q, [](FitConfig& c) { c.draws_per_iteration = 0; });
  refuses(q, [](FitConfig& c) { c.threads = 0; });
  refuses(q, [](FitConfig& c) { c.objective = test::by_vcd({.baseline = BaselineKind::leave_one_out}); });
  refuses(mixture, [](FitConfig& c) { c.objective = test::by_vcd({.entropy = Entropy::analytic}); });
  refuses(q, [](FitConfig& c) { c.objective = nullptr; });
  refuses(q, [](FitConfig& c) { c.kernel = nullptr; });
  EXPECT_THROW(Vcd({.alpha = 1.5}), InputError);
}

TEST(Fit, NoStepFromChainsThatDoNotMove) {
  const DensityTarget target(2, test::scaled_gaussian(2, 0.1));
  GaussianFamily q(2, Covariance::full);
  FitConfig config;
  config.refine.step_size = 1e3;
  config.refine.adapt = Adapt::off;
  config.least_acceptance = 0.5;
  const PhiloxSource random(1);
  Fit fit(target, q, config, random);
  const std::vector<double> before(q.parameters().begin(), q.parameters().end());
  for (int i = 0; i < 5; ++i) fit.step();
  EXPECT_EQ(fit.skipped_steps(), 5);
  EXPECT_TRUE(std::ranges::equal(before, q.parameters()));
}

}  // namespace
}  // namespace hone
