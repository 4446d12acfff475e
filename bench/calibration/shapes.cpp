#include <cmath>

#include "bench/calibration/densities.hpp"

namespace hone::calibration {
namespace {

// Quantile p of x = exp(v / 2) e, v ~ N(0, sd), e ~ N(0, 1): bisection on ∫ Φ(x exp(−v / 2)) N(v | 0, sd) dv.
double funnel_quantile(double p, double sd) {
  const auto below = [sd](double x) {
    constexpr int points = 2000;
    double sum = 0, weights = 0;
    for (int i = 0; i <= points; ++i) {
      const double u = -9 + 18.0 * i / points, weight = std::exp(-0.5 * u * u);
      sum += weight * 0.5 * std::erfc(-x * std::exp(-0.5 * sd * u) / std::numbers::sqrt2);
      weights += weight;
    }
    return sum / weights;
  };
  double low = 0, high = 1;
  while (below(high) < p) high *= 2;
  for (int i = 0; i < 60; ++i) (below(0.5 * (low + high)) < p ? low : high) = 0.5 * (low + high);
  return low;
}

// Neal's: v, then x_i ~ N(0, exp(v / 2)).
enum class Centring { centred, noncentred };
Case funnel(const std::string& name, double sd, std::size_t count, Centring centring) {
  const auto names = list({"v"}, numbered("x", count));
  const auto density = [=](At z, Slope gradient) {
    std::fill(gradient.begin(), gradient.end(), 0.0);
    double value = normal_prior(z[0], centring == Centring::centred ? sd : 1, gradient[0]);
    for (std::size_t i = 1; i < z.size(); ++i) {
      if (centring == Centring::noncentred) {
        value += normal_prior(z[i], 1, gradient[i]);
        continue;
      }
      const double precision = std::exp(-z[0]);
      value -= 0.5 * (z[i] * z[i] * precision + z[0]);
      gradient[i] -= z[i] * precision;
      gradient[0] += 0.5 * (z[i] * z[i] * precision - 1);
    }
    return value;
  };
  const auto constrain = [=](At z, Slope x) {
    const bool as_is = centring == Centring::centred;
    x[0] = as_is ? z[0] : sd * z[0];
    for (std::size_t i = 1; i < z.size(); ++i) x[i] = as_is ? z[i] : z[i] * std::exp(0.5 * x[0]);
  };
  const auto truth = [=] {
    const double spread = 2 * funnel_quantile(0.95, sd) / quantile_width;
    return closed_form(names, [&](std::size_t i, Known& k) {
      k.spread = i == 0 ? sd : spread;
      k.by = i == 0 ? By::moments : By::quantiles;
    });
  };
  return {.name = name,
          .kind = "funnel",
          .make = [=] { return make_posterior(density, names, names, constrain); },
          .how = "quadrature",
          .truth = truth};
}

// Pairs: x ~ N(0, sd), y ~ N(bend (x² − sd²), 1).
Case banana(const std::string& name, double sd, double bend, std::size_t pairs) {
  const auto names = list(numbered("x", pairs), numbered("y", pairs));
  const auto density = [=](At z, Slope gradient) {
    double value = 0;
    for (std::size_t i = 0; i < pairs; ++i) {
      const double x = z[i], r = z[pairs + i] - bend * (x * x - sd * sd);
      value -= 0.5 * (square(x / sd) + r * r);
      gradient[pairs + i] = -r;
      gradient[i] = -x / (sd * sd) + 2 * bend * x * r;
    }
    return value;
  };
  const auto truth = [=] {
    return closed_form(
        names, [&](std::size_t i, Known& k) { k.spread = i < pairs ? sd : std::sqrt(1 + 2 * square(bend * sd * sd)); });
  };
  return {.name = name,
          .kind = "banana",
          .make = [=] { return make_posterior(density, names); },
          .how = "closed form",
          .truth = truth};
}

// A value y = a b seen with an error, a and b standard normal: two hyperbolas, or one if both are positive.
Case product_ridge(const std::string& name, Scale scale, double error) {
  const auto natural = [=](At x, Slope slope) {
    const double r = (1 - x[0] * x[1]) / error;
    slope[0] += r / error * x[1];
    slope[1] += r / error * x[0];
    return normal_prior(x[0], 1, slope[0]) + normal_prior(x[1], 1, slope[1]) - 0.5 * r * r;
  };
  const Maker make = [=] { return posterior({"a", "b"}, {scale, scale}, natural); };
  return {.name = name,
          .kind = "ridge",
          .make = make,
          .how = "quadrature",
          .truth = [=] { return by_grid(make, 2000); },
          .kept = Kept::yes};
}

// The radius is near 3.
Case ring() {
  const auto density = [](At z, Slope gradient) {
    const double radius = std::hypot(z[0], z[1]), r = (radius - 3) / 0.3;
    for (int i = 0; i < 2; ++i) gradient[i] = -r / 0.3 * z[i] / radius;
    return -0.5 * r * r;
  };
  const Maker make = [=] { return make_posterior(density, {"x", "y"}); };
  return {.name = "ring",
          .kind = "ridge",
          .make = make,
          .how = "quadrature",
          .truth = [=] { return by_grid(make, 1000); },
          .kept = Kept::yes};
}

// exp(−x⁴ / 4) in each coordinate.
Case light_tails() {
  const auto names = numbered("x", 5);
  const auto density = [](At z, Slope gradient) {
    double value = 0;
    for (std::size_t i = 0; i < z.size(); ++i) value -= 0.25 * square(z[i] * z[i]), gradient[i] = -z[i] * z[i] * z[i];
    return value;
  };
  const double sd = std::sqrt(2 * std::tgamma(0.75) / std::tgamma(0.25));
  return {.name = "light_tails_5",
          .kind = "ridge",
          .make = [=] { return make_posterior(density, names); },
          .how = "closed form",
          .truth = [=] { return closed_form(names, [&](std::size_t, Known& k) { k.spread = sd; }); }};
}

}  // namespace

std::vector<Case> shapes() {
  return {funnel("funnel_centred", 3, 9, Centring::centred),
          funnel("funnel_mild_centred", 1, 5, Centring::centred),
          funnel("funnel_noncentred", 3, 9, Centring::noncentred),
          banana("banana_mild", 1, 0.5, 1),
          banana("banana_strong", 10, 0.1, 1),
          banana("banana_five_pairs", 2, 0.5, 5),
          product_ridge("ridge_two_hyperbolas", Scale::real, 0.3),
          product_ridge("ridge_one_hyperbola", Scale::positive, 0.1),
          ring(),
          light_tails()};
}

}  // namespace hone::calibration
