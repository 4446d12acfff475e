#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hone/base/scalar.hpp"
#include "hone/target/density.hpp"

// Densities written in natural-scale parameters, turned into posteriors over Stan's unconstrained coordinates.
namespace hone::test {

using Values = std::vector<double>;

// How a natural-scale parameter x is computed from its unconstrained coordinate z.
enum class Scale {
  real,      // x = z
  positive,  // x = exp(z)
  unit,      // x = sigmoid(z), in (0, 1)
  after,     // x = x before it + exp(z)
  below,     // x = (1 − x before it) sigmoid(z), in (0, 1 − x before it)
};

// x from z; returns the logarithm of the transform's Jacobian.
inline double to_natural(const std::vector<Scale>& scales, std::span<const double> z, std::span<double> x) {
  double log_jacobian = 0;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const double log_unit = -softplus(z[i]) - softplus(-z[i]);  // log s + log(1 − s)
    switch (scales[i]) {
      case Scale::real:
        x[i] = z[i];
        break;
      case Scale::positive:
        x[i] = std::exp(z[i]), log_jacobian += z[i];
        break;
      case Scale::unit:
        x[i] = sigmoid(z[i]), log_jacobian += log_unit;
        break;
      case Scale::after:
        x[i] = x[i - 1] + std::exp(z[i]), log_jacobian += z[i];
        break;
      case Scale::below:
        x[i] = (1 - x[i - 1]) * sigmoid(z[i]), log_jacobian += std::log1p(-x[i - 1]) + log_unit;
        break;
    }
  }
  return log_jacobian;
}

// The gradient in z of log density + log Jacobian, from the gradient in x, in place.
inline void to_unconstrained(const std::vector<Scale>& scales, std::span<const double> z, std::span<const double> x,
                             std::span<double> gradient) {
  for (std::size_t i = scales.size(); i-- > 0;) {
    const double s = sigmoid(z[i]);
    double& slope = gradient[i];
    switch (scales[i]) {
      case Scale::real:
        break;
      case Scale::positive:
        slope = slope * x[i] + 1;
        break;
      case Scale::unit:
        slope = slope * s * (1 - s) + 1 - 2 * s;
        break;
      case Scale::after:
        gradient[i - 1] += slope;
        slope = slope * std::exp(z[i]) + 1;
        break;
      case Scale::below:
        gradient[i - 1] -= s * slope + 1 / (1 - x[i - 1]);
        slope = slope * (1 - x[i - 1]) * s * (1 - s) + 1 - 2 * s;
        break;
    }
  }
}

// A log density of natural-scale parameters: adds its gradient to `slope`.
using Natural = std::function<double(std::span<const double> x, std::span<double> slope)>;

inline std::vector<std::string> numbered(const std::string& name, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i <= count; ++i) names.push_back(name + "." + std::to_string(i));
  return names;
}

template <class... More>
std::vector<std::string> list(std::vector<std::string> first, const More&... more) {
  (first.insert(first.end(), more.begin(), more.end()), ...);
  return first;
}

inline auto on_unconstrained(const std::vector<Scale>& scales, Natural natural) {
  return [scales, natural](std::span<const double> z, std::span<double> gradient) {
    Values x(z.size());
    const double log_jacobian = to_natural(scales, z, x);
    std::fill(gradient.begin(), gradient.end(), 0.0);
    const double value = natural(x, gradient);
    to_unconstrained(scales, z, x, gradient);
    return value + log_jacobian;
  };
}

inline std::unique_ptr<Posterior> posterior(std::vector<std::string> names, std::vector<Scale> scales,
                                            Natural natural) {
  auto constrain = [scales](std::span<const double> z, std::span<double> x) { to_natural(scales, z, x); };
  return make_posterior(on_unconstrained(scales, std::move(natural)), names, names, constrain);
}

// log N(y | mean, sd) without its constant; adds the derivatives in mean and sd to by_mean and by_sd.
inline double normal(double y, double mean, double sd, double& by_mean, double& by_sd) {
  const double r = (y - mean) / sd;
  by_mean += r / sd;
  by_sd += (r * r - 1) / sd;
  return -0.5 * r * r - std::log(sd);
}

// log N(x | 0, sd) and log Cauchy(x | 0, scale) as priors of x.
inline double normal_prior(double x, double sd, double& slope) {
  slope -= x / (sd * sd);
  return -0.5 * square(x / sd);
}
inline double cauchy_prior(double x, double scale, double& slope) {
  slope -= 2 * x / (square(scale) + square(x));
  return -std::log1p(square(x / scale));
}

}  // namespace hone::test
