// wrong_gradient: planted errors are found; right gradients never, whatever the density is like.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <thread>

#include "hone/base/random.hpp"
#include "hone/base/scalar.hpp"
#include "hone/target/density.hpp"
#include "hone/target/toys.hpp"

namespace hone {
namespace {

using Density = std::function<double(std::span<const double>, std::span<double>)>;

double gaussian(std::span<const double> z, std::span<double> gradient) {
  double sum = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    gradient[i] = 0.3 - z[i] * static_cast<double>(i + 1);
    sum += 0.3 * z[i] - 0.5 * static_cast<double>(i + 1) * z[i] * z[i];
  }
  return sum;
}

// The same, with the gradient in the last coordinate multiplied by a factor.
Density faulty(double factor) {
  return [factor](std::span<const double> z, std::span<double> gradient) {
    const double value = gaussian(z, gradient);
    gradient.back() *= factor;
    return value;
  };
}

std::optional<WrongGradient> found_in(const Density& density, std::vector<double> z) {
  return wrong_gradient(DensityTarget(static_cast<int>(z.size()), density), z);
}

TEST(GradientCheck, NamesTheCoordinateAndSaysWhatItShouldBe) {
  for (const double factor : {-1.0, 0.1, 10.0, 0.5, 2.0, 0.0})
    for (const int d : {1, 3, 15}) {
      const auto found = found_in(faulty(factor), std::vector<double>(static_cast<std::size_t>(d), 0.7));
      ASSERT_TRUE(found) << factor << " in " << d;
      EXPECT_EQ(found->coordinate, d - 1);
      EXPECT_NEAR(found->difference, 0.3 - 0.7 * d, 1e-6);
      EXPECT_NEAR(found->given, factor * (0.3 - 0.7 * d), 1e-12);
    }
  const DensityTarget target(2, faulty(-1));
  EXPECT_EQ(gradient_complaint(target, std::vector{0.7, 0.7}, {"a", "tau"}),
            "the gradient is not that of the value: at the start, in coordinate tau, the gradient is 1.1, and "
            "differences of the value say -1.1");
  EXPECT_EQ(gradient_complaint(DensityTarget(2, faulty(1)), std::vector{0.7, 0.7}, {"a", "tau"}), "");
}

TEST(GradientCheck, SmallErrorsAreNotGross) {
  for (const double factor : {0.8, 0.95, 1.0, 1.05, 1.3}) EXPECT_FALSE(found_in(faulty(factor), {0.7, 0.7, 0.7}));
}

// What other densities are: kinks, jumps, supports, noise, few digits, steepness. Each gradient is right where there is
// one.
const Density right[] = {
    [](std::span<const double> z, std::span<double> g) {  // Laplace: kinks at 0
      double sum = 0;
      for (std::size_t i = 0; i < z.size(); ++i) sum -= std::abs(z[i]), g[i] = z[i] > 0 ? -1 : 1;
      return sum;
    },
    [](std::span<const double> z, std::span<double> g) {  // steps that the gradient does not know
      double sum = 0;
      for (std::size_t i = 0; i < z.size(); ++i) sum += std::floor(3 * z[i]) - 0.5 * z[i] * z[i], g[i] = -z[i];
      return sum;
    },
    [](std::span<const double> z, std::span<double> g) {  // z > 0
      double sum = 0;
      for (std::size_t i = 0; i < z.size(); ++i)
        sum += z[i] > 0 ? std::log(z[i]) - z[i] : -infinity, g[i] = 1 / z[i] - 1;
      return sum;
    },
    [](std::span<const double> z, std::span<double> g) {  // float32, with a large constant
      float sum = -1e5F;
      for (std::size_t i = 0; i < z.size(); ++i) {
        const auto x = static_cast<float>(z[i]);
        sum -= 0.5F * x * x, g[i] = -x;
      }
      return static_cast<double>(sum);
    },
    [](std::span<const double> z, std::span<double> g) {  // float32 terms that cancel
      float high = 3e4F, low = 3e4F;
      for (std::size_t i = 0; i < z.size(); ++i) {
        const auto x = static_cast<float>(z[i]);
        high += 0.5F * x * x, low += x * x, g[i] = -x;
      }
      return static_cast<double>(high - low);
    },
    [](std::span<const double> z, std::span<double> g) {  // a likelihood in float32, a prior in double
      float sum = 3e5F;
      double prior = 0;
      for (std::size_t i = 0; i < z.size(); ++i) {
        const auto x = static_cast<float>(z[i]);
        sum -= 40 * (x - 0.5F) * (x - 0.5F), prior -= 0.5 * z[i] * z[i], g[i] = 40 - 80 * static_cast<double>(x) - z[i];
      }
      return static_cast<double>(sum) + prior;
    },
    [](std::span<const double> z, std::span<double> g) {  // as steep as a posterior of much data
      double sum = 0;
      for (std::size_t i = 0; i < z.size(); ++i) sum -= 0.5e8 * square(z[i] - 0.2), g[i] = -1e8 * (z[i] - 0.2);
      return sum;
    },
    [](std::span<const double> z, std::span<double> g) {  // ripples finer than a step
      double sum = 0;
      for (std::size_t i = 0; i < z.size(); ++i)
        sum += std::sin(5e3 * z[i]) - 0.5 * z[i] * z[i], g[i] = 5e3 * std::cos(5e3 * z[i]) - z[i];
      return sum;
    },
    [](std::span<const double> z, std::span<double> g) {  // flat where it starts, and steep beyond
      double sum = 0;
      for (std::size_t i = 0; i < z.size(); ++i)
        sum -= 1e6 * z[i] * z[i] * z[i] * z[i], g[i] = -4e6 * z[i] * z[i] * z[i];
      return sum;
    },
};

TEST(GradientCheck, ARightGradientIsNeverFoundWrong) {
  const PhiloxSource random(7);
  for (std::size_t k = 0; k < std::size(right); ++k)
    for (std::uint32_t trial = 0; trial < 300; ++trial) {
      std::vector<double> z(1 + trial % 4);
      random.normals({Purpose::start, 0, trial}, z);
      for (double& x : z) x *= std::pow(10.0, static_cast<double>(trial % 5) - 2);
      if (trial == 0) z[0] = 0;
      EXPECT_FALSE(found_in(right[k], z)) << "density " << k << ", trial " << trial << ", at " << z[0];
    }
}

TEST(GradientCheck, AValueWithNoiseIsNotJudged) {
  const PhiloxSource random(3);
  for (const double size : {1e-6, 1e-3, 1.0})
    for (std::uint32_t trial = 0; trial < 300; ++trial) {
      std::uint32_t call = 0;
      const Density noisy = [&](std::span<const double> z, std::span<double> g) {
        std::vector<double> noise(1);
        random.normals({Purpose::start, trial, call++}, noise);
        return gaussian(z, g) + size * noise[0];
      };
      EXPECT_FALSE(found_in(noisy, {0.1, 0.4})) << size << ", trial " << trial;
    }
}

TEST(GradientCheck, ToysAndPointsOutsideTheSupportPass) {
  for (const Toy toy : {Toy::gaussian, Toy::mixture, Toy::banana})
    for (const double x : {-1.0, 0.1, 2.0}) EXPECT_FALSE(wrong_gradient(*make_toy(toy), std::vector{x, x}));
  const Density nowhere = [](std::span<const double>, std::span<double>) { return -infinity; };
  EXPECT_FALSE(found_in(nowhere, {0.1, 0.1}));
}

TEST(GradientCheck, CostsAtMost41Values) {
  int calls = 0;
  const Density counted = [&](std::span<const double> z, std::span<double> g) { return ++calls, gaussian(z, g); };
  EXPECT_FALSE(found_in(counted, std::vector<double>(500, 0.1)));
  EXPECT_EQ(calls, 41);
  calls = 0;
  const Density slow = [&](std::span<const double> z, std::span<double> g) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return ++calls, gaussian(z, g);
  };
  EXPECT_FALSE(found_in(slow, std::vector<double>(500, 0.1)));
  EXPECT_LE(calls, 29);
}

}  // namespace
}  // namespace hone
