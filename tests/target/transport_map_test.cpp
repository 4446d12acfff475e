#include "hone/target/transport_map.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/random.hpp"
#include "hone/target/density.hpp"
#include "tests/support/differences.hpp"

namespace hone::test {
namespace {

using Shape = TransportMap::Shape;
constexpr int d = 4;

TransportMap::Term term(int from, Shape shape, double factor, double knot = 0) {
  return {.from = from,
          .shape = shape,
          .low = -0.9,
          .high = 0.8,
          .width = 0.7,
          .knot = knot,
          .bend = 0.3,
          .factor = factor};
}

// Coordinate 2 sets the others, 0 depends on 3, and every shape occurs in location or scale.
std::vector<TransportMap> examples() {
  const std::vector<TransportMap::Row> rows = {
      {.coordinate = 3,
       .shift = 0.3,
       .log_scale = -0.2,
       .location = {term(2, Shape::linear, 0.5)},
       .scale = {term(2, Shape::level, 0.4)}},
      {.coordinate = 0,
       .shift = -0.1,
       .log_scale = 0.1,
       .location = {term(2, Shape::square, 0.3), term(3, Shape::linear, -0.2)},
       .scale = {term(3, Shape::hinge, -0.6, 0.2), term(2, Shape::square, 0.1)}}};
  // Householder's reflection is orthogonal.
  auto rotation = std::make_shared<Matrix<double>>(d, d);
  const double v[] = {0.5, -0.1, 0.7, std::sqrt(1 - 0.25 - 0.01 - 0.49)};
  for (int i = 0; i < d; ++i)
    for (int j = 0; j < d; ++j) (*rotation)(i, j) = (i == j ? 1 : 0) - 2 * v[i] * v[j];
  // With two columns exchanged it is not symmetric.
  for (int i = 0; i < d; ++i) std::swap((*rotation)(i, 0), (*rotation)(i, 1));
  return {TransportMap(d, rows), TransportMap(d, rows, rotation)};
}

// Points inside and outside the ranges of the features.
std::vector<double> point(std::uint32_t part) {
  std::vector<double> u(d);
  PhiloxSource(3).normals({Purpose::draw, part}, u);
  for (double& x : u) x *= 1.5;
  return u;
}

// By Gaussian elimination.
double determinant(Matrix<double> a) {
  double result = 1;
  for (int k = 0; k < d; ++k) {
    int pivot = k;
    for (int i = k; i < d; ++i)
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    if (pivot != k) result = -result;
    for (int j = 0; j < d; ++j) std::swap(a(k, j), a(pivot, j));
    result *= a(k, k);
    for (int i = k + 1; i < d; ++i)
      for (int j = d - 1; j >= k; --j) a(i, j) -= a(i, k) / a(k, k) * a(k, j);
  }
  return result;
}

TEST(TransportMap, ThereAndBackWithTheDeterminantOfItsJacobian) {
  for (const TransportMap& map : examples())
    for (std::uint32_t part = 0; part < 20; ++part) {
      std::vector<double> u = point(part), e(d), back(d), trace(map.trace_size()), other(d);
      const double log_det = map.to_e(u, e, trace);
      EXPECT_NEAR(map.to_u(e, back, trace), log_det, 1e-12);
      for (int i = 0; i < d; ++i) EXPECT_NEAR(back[i], u[i], 1e-12);
      Matrix<double> jacobian(d, d);
      for (int j = 0; j < d; ++j)
        for (int i = 0; i < d; ++i)
          jacobian(i, j) = derivative_in(u[j], [&] {
            map.to_e(u, other, trace);
            return other[i];
          });
      EXPECT_NEAR(std::log(std::abs(determinant(jacobian))), log_det, 1e-8);
    }
}

// A density whose gradient is exact; over u its value has the determinant, and its gradient that of all of it.
TEST(TransportMap, GradientsByDifferences) {
  const DensityTarget target(d, [](std::span<const double> e, std::span<double> g) {
    double value = 0;
    for (int i = 0; i < d; ++i) {
      g[i] = -e[i] + 0.3 * std::cos(e[(i + 1) % d]) - 0.3 * e[(i + d - 1) % d] * std::sin(e[i]);
      value += -0.5 * e[i] * e[i] + 0.3 * e[i] * std::cos(e[(i + 1) % d]);
    }
    return value;
  });
  for (const TransportMap& map : examples())
    for (std::uint32_t part = 0; part < 20; ++part) {
      const TransportedTarget transported(target, map);
      Matrix<double> u(d, 1), gradient(d, 1), ignored(d, 1), of_e(d, 1), e(d, 1);
      const std::vector<double> at = point(part);
      std::copy(at.begin(), at.end(), u.column(0).begin());
      double value = 0, unused = 0;
      transported.evaluate(u, Want::both, {&value, 1}, gradient);
      const auto value_at = [&] {
        double result = 0;
        transported.evaluate(u, Want::value, {&result, 1}, {});
        return result;
      };
      EXPECT_EQ(value_at(), value);
      transported.evaluate(u, Want::gradient, {}, ignored);
      std::vector<double> trace(map.trace_size());
      map.to_e(u.column(0), e.column(0), trace);
      target.evaluate(e, Want::both, {&unused, 1}, of_e);
      std::vector<double> forward(gradient.column(0).begin(), gradient.column(0).end());
      map.push_forward(u.column(0), trace, forward);
      for (int i = 0; i < d; ++i) {
        EXPECT_NEAR(derivative_in(u(i, 0), value_at), gradient(i, 0), 1e-6 * (1 + std::abs(gradient(i, 0))));
        EXPECT_EQ(ignored(i, 0), gradient(i, 0));
        EXPECT_NEAR(forward[i], of_e(i, 0), 1e-10 * (1 + std::abs(of_e(i, 0))));
      }
    }
}

// Far out the map is affine: scales and what features add are bounded.
TEST(TransportMap, LevelsOffFarOut) {
  const TransportMap map = examples()[0];
  std::vector<double> far{0, 0, 1e6, 0}, farther{0, 0, 2e6, 0}, e(d), trace(map.trace_size()), other(map.trace_size());
  map.to_e(far, e, trace);
  map.to_e(farther, e, other);
  EXPECT_DOUBLE_EQ(trace[d], other[d]);  // the scale of the first row
  EXPECT_LT(trace[d], 3);
}

}  // namespace
}  // namespace hone::test
