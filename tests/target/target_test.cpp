#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "hone/base/error.hpp"
#include "hone/base/random.hpp"
#include "hone/base/scalar.hpp"
#include "hone/target/density.hpp"
#include "hone/target/toys.hpp"
#include "tests/support/differences.hpp"

namespace hone {
namespace {

double value_at(const Target& target, std::span<const double> z) {
  double value = 0;
  target.evaluate({z.data(), target.dimension(), 1}, Want::value, {&value, 1}, {});
  return value;
}

class ToyTargets : public testing::TestWithParam<Toy> {};

TEST_P(ToyTargets, GradientAgreesWithDifferences) {
  const auto target = make_toy(GetParam());
  const PhiloxSource random(11);
  for (std::uint32_t trial = 0; trial < 50; ++trial) {
    std::vector<double> z(2), slope(2);
    random.normals({Purpose::start, 0, trial}, z);
    for (double& x : z) x *= 2;
    target->evaluate({z.data(), 2, 1}, Want::gradient, {}, {slope.data(), 2, 1});
    for (int i = 0; i < 2; ++i) {
      const double expected = test::derivative_in(z[i], [&] { return value_at(*target, z); });
      EXPECT_NEAR(slope[i], expected, 1e-8 * (1 + std::abs(expected)));
    }
  }
}

// ∫ p(z) dz = 1 by the midpoint rule, which is all but exact for a smooth density that vanishes at the border.
TEST_P(ToyTargets, IsNormalised) {
  const auto target = make_toy(GetParam());
  const double h = 0.05;
  double mass = 0;
  for (double x = -9; x < 9; x += h)
    for (double y = -40; y < 9; y += h) mass += std::exp(value_at(*target, std::vector{x + h / 2, y + h / 2})) * h * h;
  EXPECT_NEAR(mass, 1, 1e-6);
}

TEST_P(ToyTargets, ABatchIsItsColumns) {
  const auto target = make_toy(GetParam());
  Matrix<double> z(2, 5), gradient(2, 5);
  PhiloxSource(5).normals({Purpose::start}, z.view().flat());
  std::vector<double> value(5);
  target->evaluate(z, Want::both, value, gradient);
  for (int i = 0; i < 5; ++i) {
    std::vector<double> slope(2);
    target->evaluate(z.view().columns(i, i + 1), Want::gradient, {}, {slope.data(), 2, 1});
    EXPECT_EQ(value[i], value_at(*target, z.column(i)));
    EXPECT_EQ(gradient(0, i), slope[0]);
    EXPECT_EQ(gradient(1, i), slope[1]);
  }
}

TEST_P(ToyTargets, AnOverflowIsMinusInfinity) {
  const auto target = make_toy(GetParam());
  EXPECT_EQ(value_at(*target, std::vector{1e200, -1e200}), -infinity);
  EXPECT_EQ(value_at(*target, std::vector{std::nan(""), 0.0}), -infinity);
}

INSTANTIATE_TEST_SUITE_P(All, ToyTargets, testing::Values(Toy::gaussian, Toy::mixture, Toy::banana),
                         [](const auto& toy) {
                           if (toy.param == Toy::gaussian) return "gaussian";
                           return toy.param == Toy::mixture ? "mixture" : "banana";
                         });

TEST(GaussianTarget, ValueAgreesWithTheFormula) {
  // correlation ρ: log p = −log 2π − ½ log(1 − ρ²) − (x² − 2ρxy + y²) / (2 (1 − ρ²))
  const double rho = 0.95, x = 0.3, y = -0.2;
  const double expected = -std::log(2 * std::numbers::pi) - 0.5 * std::log(1 - rho * rho) -
                          (x * x - 2 * rho * x * y + y * y) / (2 * (1 - rho * rho));
  EXPECT_NEAR(value_at(*make_toy(Toy::gaussian), std::vector{x, y}), expected, 1e-12);
}

TEST(GaussianTarget, RefusesWhatIsNoCovariance) {
  Matrix<double> indefinite(2, 2);
  indefinite(0, 0) = indefinite(1, 1) = 1;
  indefinite(0, 1) = indefinite(1, 0) = 2;
  EXPECT_THROW(GaussianTarget({0, 0}, indefinite), InputError);
  EXPECT_THROW(GaussianTarget({0}, indefinite), InputError);
}

TEST(DensityTarget, AnExceptionOrNanIsOutsideTheSupport) {
  const DensityTarget target(1, [](std::span<const double> z, std::span<double> gradient) {
    if (z[0] < 0) throw std::domain_error("negative");
    gradient[0] = -1;
    return z[0] > 10 ? std::nan("") : -z[0];
  });
  EXPECT_EQ(value_at(target, std::vector{-1.0}), -infinity);
  EXPECT_EQ(value_at(target, std::vector{11.0}), -infinity);
  EXPECT_EQ(value_at(target, std::vector{2.0}), -2);
}

TEST(DensityTarget, ANonFiniteGradientIsOutsideTheSupport) {
  const DensityTarget target(1, [](std::span<const double>, std::span<double> gradient) {
    gradient[0] = std::nan("");
    return 0.0;
  });
  double z = 0, value = 0, gradient = 0;
  target.evaluate({&z, 1, 1}, Want::both, {&value, 1}, {&gradient, 1, 1});
  EXPECT_EQ(value, -infinity);
}

double plain_function(std::span<const double> z, std::span<double> gradient) {
  gradient[0] = -z[0];
  gradient[1] = -z[1];
  return -0.5 * (z[0] * z[0] + z[1] * z[1]);
}

TEST(MakePosterior, AnyCallableBecomesAPosteriorInOneLine) {
  const auto posterior = make_posterior(plain_function, {"a", "b"});
  EXPECT_EQ(posterior->dimension(), 2);
  EXPECT_EQ(posterior->names(), posterior->coordinate_names());
  EXPECT_EQ(posterior->parameter_count(), 2u);
  EXPECT_EQ(value_at(*posterior, std::vector{1.0, 2.0}), -2.5);
  std::vector<double> natural(2);
  posterior->constrain(std::vector{1.0, 2.0}, natural);
  EXPECT_EQ(natural, (std::vector<double>{1, 2}));
}

TEST(MakePosterior, NaturalValuesMayBeMoreThanCoordinates) {
  const auto to_natural = [](std::span<const double> z, std::span<double> natural) {
    if (z[0] > 5) throw std::domain_error("too large");
    natural[0] = std::exp(z[0]), natural[1] = z[1], natural[2] = natural[0] + natural[1];
  };
  const auto posterior = make_posterior(plain_function, {"log_a", "b"}, {"a", "b", "sum"}, to_natural, 2);
  EXPECT_EQ(posterior->parameter_count(), 2u);
  std::vector<double> natural(3);
  posterior->constrain(std::vector{0.0, 2.0}, natural);
  EXPECT_EQ(natural, (std::vector<double>{1, 2, 3}));
  EXPECT_THROW(posterior->constrain(std::vector{6.0, 2.0}, natural), Error);
  EXPECT_EQ(make_posterior(plain_function, {"log_a", "b"}, {"a", "b", "sum"}, to_natural)->parameter_count(), 3u);
  EXPECT_THROW(make_posterior(plain_function, {"log_a", "b"}, {"a"}, to_natural, 2), InputError);
  EXPECT_THROW(make_posterior(plain_function, {}), InputError);
}

}  // namespace
}  // namespace hone
