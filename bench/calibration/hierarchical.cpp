#include <cmath>

#include "bench/calibration/densities.hpp"

namespace hone::calibration {
namespace {

enum class Centring { centred, noncentred };

// y ~ N(b + r_group, sigma), r ~ N(0, sd): eight groups, 120 data, the priors that brms takes.
Maker random_intercepts(Centring centring) {
  constexpr std::size_t groups = 8, per_group = 15;
  Simulation simulation(11);
  Values y;
  for (std::size_t j = 0; j < groups; ++j) {
    const double mean = 2 + 0.8 * simulation.normal();
    for (std::size_t i = 0; i < per_group; ++i) y.push_back(mean + 1.5 * simulation.normal());
  }
  const auto natural = [=](At x, Slope slope) {
    const double sd = x[1];
    double value = student_prior(x[0] - 2, 3, 2.5, slope[0]) + student_prior(sd, 3, 2.5, slope[1]) +
                   student_prior(x[2], 3, 2.5, slope[2]);
    for (std::size_t j = 0; j < groups; ++j) {
      const double at = x[3 + j], r = centring == Centring::centred ? at : sd * at;
      double by_r = 0;
      for (std::size_t i = 0; i < per_group; ++i) value += normal(y[j * per_group + i], x[0] + r, x[2], by_r, slope[2]);
      slope[0] += by_r;
      if (centring == Centring::centred) {
        slope[3 + j] += by_r;
        double ignored = 0;
        value += normal3(at, 0, sd, slope[3 + j], ignored, slope[1]);
      } else {
        slope[3 + j] += by_r * sd, slope[1] += by_r * at;
        value += normal_prior(at, 1, slope[3 + j]);
      }
    }
    return value;
  };
  const auto scales = positive_at(groups + 3, {1, 2});
  const auto coordinates = list({"b", "sd", "sigma"}, numbered(centring == Centring::centred ? "r" : "z", groups));
  const auto constrain = [=](At z, Slope x) {
    to_natural(scales, z, x);
    if (centring == Centring::noncentred)
      for (std::size_t j = 0; j < groups; ++j) x[3 + groups + j] = x[1] * x[3 + j];
  };
  auto names = coordinates;
  if (centring == Centring::noncentred) names = list(names, numbered("r", groups));
  return [=] {
    return make_posterior(on_unconstrained(scales, natural), coordinates, names, constrain, coordinates.size());
  };
}

// mu, tau and many log odds theta_j = mu + tau z_j, each with y_j successes of six.
constexpr double trials = 6;
Values successes(std::size_t many) {
  Simulation simulation(12);
  Values y(many);
  for (double& count : y) {
    const double p = sigmoid(0.5 + simulation.normal());
    for (int i = 0; i < trials; ++i) count += simulation.bernoulli(p);
  }
  return y;
}

std::unique_ptr<Posterior> hierarchical_logistic(std::size_t many) {
  const Values y = successes(many);
  const auto scales = positive_at(many + 2, {1});
  const auto coordinates = list({"mu", "tau"}, numbered("z", many));
  const auto natural = [=](At x, Slope slope) {
    double value = normal_prior(x[0], 2, slope[0]) + normal_prior(x[1], 1, slope[1]);
    for (std::size_t j = 0; j < many; ++j) {
      double by = 0;
      value += binomial_logit(y[j], trials, x[0] + x[1] * x[2 + j], by) + normal_prior(x[2 + j], 1, slope[2 + j]);
      slope[0] += by, slope[1] += by * x[2 + j], slope[2 + j] += by * x[1];
    }
    return value;
  };
  const auto constrain = [=](At z, Slope x) {
    to_natural(scales, z, x);
    for (std::size_t j = 0; j < many; ++j) x[2 + many + j] = x[0] + x[1] * x[2 + j];
  };
  return make_posterior(on_unconstrained(scales, natural), coordinates, list(coordinates, numbered("theta", many)),
                        constrain, coordinates.size());
}

// The same posterior over theta itself, which comes before its mean and scale: a funnel.
std::unique_ptr<Posterior> centred_logistic(std::size_t many) {
  const Values y = successes(many);
  const auto scales = positive_at(many + 2, {many + 1});
  const auto natural = [=](At x, Slope slope) {
    const double mu = x[many], tau = x[many + 1];
    double value = normal_prior(mu, 2, slope[many]) + normal_prior(tau, 1, slope[many + 1]);
    for (std::size_t j = 0; j < many; ++j)
      value +=
          binomial_logit(y[j], trials, x[j], slope[j]) + normal3(x[j], mu, tau, slope[j], slope[many], slope[many + 1]);
    return value;
  };
  const auto names = list(numbered("theta", many), std::vector<std::string>{"mu", "tau"});
  return make_posterior(
      on_unconstrained(scales, natural), names, names, [=](At z, Slope x) { to_natural(scales, z, x); }, many + 2);
}

// What z integrates to, given mu, tau and y successes: 1, theta, theta².
std::array<double, 3> integrals(double mu, double tau, double y) {
  constexpr int points = 80;
  std::array<double, 3> sum{};
  for (int i = 0; i <= points; ++i) {
    const double z = -8 + 16.0 * i / points, theta = mu + tau * z;
    double ignored = 0;
    const double p = std::exp(binomial_logit(y, trials, theta, ignored) - 0.5 * z * z);
    sum[0] += p, sum[1] += p * theta, sum[2] += p * theta * theta;
  }
  return sum;
}

// Sums over a grid of mu and tau; the theta_j of equal y share their moments.
struct Grid {
  double mu, mu_width, tau, tau_width;
};
Truth hierarchical_logistic_truth(std::size_t many, const Grid& grid) {
  const Values y = successes(many);
  Values count(static_cast<std::size_t>(trials) + 1);
  for (const double value : y) ++count[static_cast<std::size_t>(value)];
  constexpr int points = 120;
  double mass = 0, offset = 0, mu1 = 0, mu2 = 0, tau1 = 0, tau2 = 0;
  Values theta1(count.size()), theta2(count.size());
  for (int i = 0; i < points; ++i)
    for (int k = 0; k < points; ++k) {
      const double mu = grid.mu + grid.mu_width * i / points, tau = grid.tau + grid.tau_width * k / points;
      double log_p = -0.5 * square(mu / 2) - 0.5 * tau * tau;
      std::vector<std::array<double, 3>> given;
      for (std::size_t s = 0; s < count.size(); ++s) {
        given.push_back(integrals(mu, tau, static_cast<double>(s)));
        log_p += count[s] * std::log(given[s][0]);
      }
      if (mass == 0) offset = log_p + 50;
      const double p = std::exp(log_p - offset);
      mass += p, mu1 += p * mu, mu2 += p * mu * mu, tau1 += p * tau, tau2 += p * tau * tau;
      for (std::size_t s = 0; s < count.size(); ++s)
        theta1[s] += p * given[s][1] / given[s][0], theta2[s] += p * given[s][2] / given[s][0];
    }
  const auto known = [mass](const std::string& name, double first, double second) {
    return Known{.name = name, .centre = first / mass, .spread = std::sqrt(second / mass - square(first / mass))};
  };
  Truth truth = {known("mu", mu1, mu2), known("tau", tau1, tau2)};
  for (std::size_t j = 0; j < many; ++j) {
    const auto s = static_cast<std::size_t>(y[j]);
    truth.push_back(known("theta." + std::to_string(j + 1), theta1[s], theta2[s]));
  }
  return truth;
}

Case hierarchical_logistic_case(std::size_t many) {
  return {.name = "hierarchical_logistic_" + std::to_string(many + 2),
          .kind = "hierarchical",
          .make = [=] { return hierarchical_logistic(many); },
          .how = "quadrature",
          .truth =
              [=] {
                return hierarchical_logistic_truth(many, {0.1, 0.8, 0.6, 0.8});
              }};
}

Case centred_logistic_case(std::size_t many) {
  return {.name = "centred_logistic_" + std::to_string(many + 2),
          .kind = "hierarchical",
          .make = [=] { return centred_logistic(many); },
          .how = "quadrature",
          .truth =
              [=] {
                return hierarchical_logistic_truth(many, {-1.5, 4, 0.005, 3});
              }};
}

}  // namespace

std::vector<Case> hierarchical() {
  const Maker noncentred = random_intercepts(Centring::noncentred);
  const LongRun run{.acceptance = 0.98};
  return {{"random_intercepts_centred", "hierarchical", random_intercepts(Centring::centred),
           "long NUTS run, non-centred", [=] { return by_nuts(noncentred, run); }, Kept::yes},
          {"random_intercepts_noncentred", "hierarchical", noncentred, "long NUTS run",
           [=] { return by_nuts(noncentred, run); }, Kept::yes},
          centred_logistic_case(12),
          centred_logistic_case(60),
          hierarchical_logistic_case(500),
          hierarchical_logistic_case(1000),
          hierarchical_logistic_case(5000)};
}

}  // namespace hone::calibration
