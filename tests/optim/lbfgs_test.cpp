#include "hone/optim/lbfgs.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/target/density.hpp"

namespace hone {
namespace {

// A quadratic with curvatures 1, 4, 9, … and a correlation between neighbours.
double quadratic(std::span<const double> z, std::span<double> g) {
  double sum = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double c = square(static_cast<double>(i + 1));
    g[i] = -c * (z[i] - 1);
    sum -= 0.5 * c * square(z[i] - 1);
  }
  for (std::size_t i = 0; i + 1 < z.size(); ++i) {
    sum -= 0.3 * (z[i] - 1) * (z[i + 1] - 1);
    g[i] -= 0.3 * (z[i + 1] - 1);
    g[i + 1] -= 0.3 * (z[i] - 1);
  }
  return sum;
}

TEST(Lbfgs, FindsTheMaximumOfAQuadratic) {
  const DensityTarget target(6, quadratic);
  const SearchResult found = maximize(target, std::vector<double>(6, -3.0), {});
  EXPECT_TRUE(found.converged);
  EXPECT_LT(found.iterations, 40);
  for (const double x : found.z) EXPECT_NEAR(x, 1, 1e-4);
}

TEST(Lbfgs, FindsTheEndOfRosenbrocksValley) {
  const DensityTarget target(2, [](std::span<const double> z, std::span<double> g) {
    const double rest = z[1] - z[0] * z[0];
    g[0] = 2 * (1 - z[0]) + 400 * rest * z[0];
    g[1] = -200 * rest;
    return -square(1 - z[0]) - 100 * square(rest);
  });
  const SearchResult found = maximize(target, std::vector<double>{-1.2, 1}, {});
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.z[0], 1, 1e-3);
  EXPECT_NEAR(found.z[1], 1, 2e-3);
}

TEST(Lbfgs, RegionsWithoutDensityAreWalls) {
  const DensityTarget target(1, [](std::span<const double> z, std::span<double> g) {  // log z − z: maximum at 1
    g[0] = 1 / z[0] - 1;
    return z[0] <= 0 ? -infinity : std::log(z[0]) - z[0];
  });
  const SearchResult found = maximize(target, std::vector<double>{30}, {});  // the first long steps lead below zero
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.z[0], 1, 1e-4);
  EXPECT_THROW(maximize(target, std::vector<double>{-1}, {}), InputError);
}

// After as many exact steps as dimensions the estimate knows the quadratic's inverse Hessian along the pairs: H y = s.
TEST(InverseHessian, SatisfiesTheSecantEquationAndItsFactorsAndRootAreTheSame) {
  constexpr int d = 7;
  InverseHessian h(d, 3);
  std::vector<double> s(d), y(d), hy(d), unit(d), column(d);
  for (int pair = 0; pair < 5; ++pair) {
    for (int i = 0; i < d; ++i) {
      s[i] = std::sin(1.0 + i * (pair + 1));
      y[i] = (i + 1) * s[i];
    }
    EXPECT_TRUE(h.add(s, y));
  }
  h.multiply(y, hy);
  for (int i = 0; i < d; ++i) EXPECT_NEAR(hy[i], s[i], 1e-12);
  const InverseHessian::Factors f = h.factors();
  for (int j = 0; j < d; ++j) {
    std::ranges::fill(unit, 0.0);
    unit[j] = 1;
    h.multiply(unit, column);
    for (int i = 0; i < d; ++i) {
      double element = i == j ? 1 : 0;
      for (int k = 0; k < f.u.cols(); ++k) element += f.u(i, k) * (square(f.r[k]) - 1) * f.u(j, k);
      EXPECT_NEAR(f.a[i] * element * f.a[j], column[i], 1e-10) << i << ' ' << j;
    }
  }
  const InverseHessian::Root root(h);
  Matrix<double> l(d, d);
  for (int j = 0; j < d; ++j) {
    l(j, j) = 1;
    root.multiply(l.column(j));
  }
  double log_det = 0;
  for (const double a : f.a) log_det += std::log(a);
  for (const double r : f.r) log_det += std::log(r);
  EXPECT_NEAR(root.log_det(), log_det, 1e-10);
  for (int j = 0; j < d; ++j) {
    std::ranges::fill(unit, 0.0);
    unit[j] = 1;
    h.multiply(unit, column);
    for (int i = 0; i < d; ++i) {
      double element = 0;
      for (int k = 0; k < d; ++k) element += l(i, k) * l(j, k);
      EXPECT_NEAR(element, column[i], 1e-10) << i << ' ' << j;
    }
  }
  for (double& x : y) x = -x;  // negative curvature is refused
  EXPECT_FALSE(h.add(s, y));
}

}  // namespace
}  // namespace hone
