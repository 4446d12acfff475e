#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/random.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/posteriors.hpp"

namespace hone {
namespace {

class KnownPosteriors : public testing::TestWithParam<test::KnownPosterior> {};

double value_at(const Target& target, std::span<const double> z) {
  double value = 0;
  target.evaluate({z.data(), target.dimension(), 1}, Want::value, {&value, 1}, {});
  return value;
}

TEST_P(KnownPosteriors, GradientAgreesWithDifferences) {
  const auto posterior = test::make_known(GetParam());
  const int dimension = posterior->dimension();
  const PhiloxSource random(21);
  for (std::uint32_t trial = 0; trial < 20; ++trial) {
    std::vector<double> z(dimension), slope(dimension);
    random.normals({Purpose::start, 0, trial}, z);
    posterior->evaluate({z.data(), dimension, 1}, Want::gradient, {}, {slope.data(), dimension, 1});
    const double size = std::abs(value_at(*posterior, z));
    for (int i = 0; i < dimension; ++i) {
      const double expected = test::derivative_in(z[i], [&] { return value_at(*posterior, z); });
      EXPECT_NEAR(slope[i], expected, 1e-7 * (1 + std::abs(expected)) + 1e-8 * size)
          << posterior->coordinate_names()[i];
    }
  }
}

// Every value of the reference is one of ours.
TEST_P(KnownPosteriors, HasTheNamesOfItsReference) {
  const auto posterior = test::make_known(GetParam());
  for (const auto& [name, moments] : test::reference_moments(GetParam()))
    EXPECT_NE(std::find(posterior->names().begin(), posterior->names().end(), name), posterior->names().end()) << name;
  EXPECT_EQ(posterior->coordinate_names().size(), static_cast<std::size_t>(posterior->dimension()));
  std::vector<double> z(posterior->dimension(), 0.1), natural(posterior->names().size(), NAN);
  posterior->constrain(z, natural);
  for (const double value : natural) EXPECT_TRUE(std::isfinite(value));
}

INSTANTIATE_TEST_SUITE_P(All, KnownPosteriors, testing::ValuesIn(test::known_posteriors()),
                         [](const auto& instance) { return instance.param.program; });

}  // namespace
}  // namespace hone
