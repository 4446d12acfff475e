#pragma once

#include <cmath>

#include "bench/calibration/cases.hpp"
#include "hone/base/scalar.hpp"
#include "tests/support/scales.hpp"

// Terms of log densities, without constants. Each adds its derivatives to the references it is given.
namespace hone::calibration {

using namespace hone::test;
using At = std::span<const double>;
using Slope = std::span<double>;

// log N(x | mean, sd) with derivatives in all three.
inline double normal3(double x, double mean, double sd, double& by_x, double& by_mean, double& by_sd) {
  double up = 0;
  const double value = normal(x, mean, sd, up, by_sd);
  by_mean += up;
  by_x -= up;
  return value;
}

// log Student-t(x | nu, 0, scale), as a prior of x; `nu` is fixed.
inline double student_prior(double x, double nu, double scale, double& by_x) {
  const double r = x / scale;
  by_x -= (nu + 1) * r / scale / (nu + r * r);
  return -0.5 * (nu + 1) * std::log1p(r * r / nu);
}

// log Gamma(x | shape, rate), log InverseGamma(x | shape, scale), log Beta(x | a, b), log LogNormal(x | mean, sd)
inline double gamma_prior(double x, double shape, double rate, double& by_x) {
  by_x += (shape - 1) / x - rate;
  return (shape - 1) * std::log(x) - rate * x;
}
inline double inverse_gamma_prior(double x, double shape, double scale, double& by_x) {
  by_x += -(shape + 1) / x + scale / (x * x);
  return -(shape + 1) * std::log(x) - scale / x;
}
inline double beta_prior(double x, double a, double b, double& by_x) {
  by_x += (a - 1) / x - (b - 1) / (1 - x);
  return (a - 1) * std::log(x) + (b - 1) * std::log1p(-x);
}
inline double lognormal_prior(double x, double mean, double sd, double& by_x) {
  const double r = (std::log(x) - mean) / sd;
  by_x -= (1 + r / sd) / x;
  return -0.5 * r * r - std::log(x);
}

// log Bernoulli(y | sigmoid(a)), log Binomial(y of n | sigmoid(a)), log Poisson(y | exp(a))
inline double binomial_logit(double y, double n, double a, double& by_a) {
  by_a += y - n * sigmoid(a);
  return y * a - n * softplus(a);
}
inline double bernoulli_logit(double y, double a, double& by_a) { return binomial_logit(y, 1, a, by_a); }
inline double poisson_log(double y, double a, double& by_a) {
  const double mean = std::exp(a);
  by_a += y - mean;
  return y * a - mean;
}

// The scales of count coordinates: all real but those named positive.
inline std::vector<Scale> positive_at(std::size_t count, std::initializer_list<std::size_t> positive) {
  std::vector<Scale> scales(count, Scale::real);
  for (const std::size_t i : positive) scales[i] = Scale::positive;
  return scales;
}

}  // namespace hone::calibration
