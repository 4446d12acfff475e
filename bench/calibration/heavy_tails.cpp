#include <cmath>

#include "bench/calibration/densities.hpp"

namespace hone::calibration {
namespace {

// The 95 % quantile of Student-t with 1, 3 or 5 degrees of freedom.
double student_quantile(int degrees) { return degrees == 1 ? 6.3137515 : degrees == 3 ? 2.3533634 : 2.0150484; }

Truth student_truth(const std::vector<std::string>& names, int degrees) {
  return closed_form(names, [&](std::size_t i, Known& k) {
    const double scale = static_cast<double>(i + 1);
    k.by = By::quantiles;
    k.centre = scale;
    k.spread = scale * 2 * student_quantile(degrees) / quantile_width;
  });
}

// Coordinate i has location i and scale i, from 1. Independent, or one multivariate Student-t.
Case student(const std::string& name, int degrees, std::size_t dimension, bool joint) {
  const auto names = numbered("x", dimension);
  const auto density = [=](At z, Slope gradient) {
    double value = 0, squares = 0;
    for (std::size_t i = 0; i < dimension; ++i) {
      const double scale = static_cast<double>(i + 1), r = (z[i] - scale) / scale;
      gradient[i] = 0;
      if (!joint) value += student_prior(z[i] - scale, degrees, scale, gradient[i]);
      squares += r * r;
    }
    if (!joint) return value;
    const double power = degrees + static_cast<double>(dimension);
    for (std::size_t i = 0; i < dimension; ++i) {
      const double scale = static_cast<double>(i + 1);
      gradient[i] = -power * (z[i] - scale) / square(scale) / (degrees + squares);
    }
    return -0.5 * power * std::log1p(squares / degrees);
  };
  return {.name = name,
          .kind = "heavy tails",
          .make = [=] { return make_posterior(density, names); },
          .how = "closed form",
          .truth = [=] { return student_truth(names, degrees); }};
}

// Positive values with long right tails: Gamma(0.5, 1) and LogNormal(0, 0.75).
Case skewed() {
  const std::vector<std::string> names = {"gamma.1", "gamma.2", "lognormal.1", "lognormal.2"};
  const auto natural = [](At x, Slope slope) {
    return gamma_prior(x[0], 0.5, 1, slope[0]) + gamma_prior(x[1], 0.5, 1, slope[1]) +
           lognormal_prior(x[2], 0, 0.75, slope[2]) + lognormal_prior(x[3], 0, 0.75, slope[3]);
  };
  const auto truth = [=] {
    return closed_form(names, [](std::size_t i, Known& k) {
      const double variance = square(0.75), mean = std::exp(0.5 * variance);
      k.centre = i < 2 ? 0.5 : mean;
      k.spread = i < 2 ? std::sqrt(0.5) : mean * std::sqrt(std::expm1(variance));
    });
  };
  return {.name = "skewed_4",
          .kind = "heavy tails",
          .make =
              [=] {
                return posterior(names, positive_at(4, {0, 1, 2, 3}), natural);
              },
          .how = "closed form",
          .truth = truth};
}

}  // namespace

std::vector<Case> heavy_tails() {
  return {student("cauchy_1", 1, 1, false), student("cauchy_5", 1, 5, false), student("student3_4", 3, 4, false),
          student("student5_10", 5, 10, true), skewed()};
}

}  // namespace hone::calibration
