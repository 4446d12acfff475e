#include <cmath>

#include "bench/calibration/densities.hpp"

namespace hone::calibration {
namespace {

// A random walk seen with noise: level_1 = 5 z_1, level_t = level_{t−1} + s_level z_t, y_t ~ N(level_t, s_obs).
Values walk() {
  Simulation simulation(21);
  Values y;
  for (double level = 1; y.size() < 100; level += 0.35 * simulation.normal())
    y.push_back(level + 0.5 * simulation.normal());
  return y;
}

std::unique_ptr<Posterior> local_level() {
  const Values y = walk();
  return posterior(
      list({"s_level", "s_obs"}, numbered("z", y.size())), positive_at(y.size() + 2, {0, 1}), [=](At x, Slope slope) {
        const double s = x[0];
        double value = normal_prior(s, 1, slope[0]) + normal_prior(x[1], 1, slope[1]), level = 0;
        Values by_level(y.size());
        for (std::size_t t = 0; t < y.size(); ++t) {
          level += (t == 0 ? 5 : s) * x[2 + t];
          value += normal(y[t], level, x[1], by_level[t], slope[1]) + normal_prior(x[2 + t], 1, slope[2 + t]);
        }
        double later = 0;
        for (std::size_t t = y.size(); t-- > 0;) {
          later += by_level[t];
          slope[2 + t] += later * (t == 0 ? 5 : s);
          if (t > 0) slope[0] += later * x[2 + t];
        }
        return value;
      });
}

// The levels integrated out by a Kalman filter; central differences for its gradient, which only the sampler that finds
// the range of the grid needs.
std::unique_ptr<Posterior> local_level_marginal() {
  const Values y = walk();
  const auto value = [=](double s_level, double s_obs) {
    double sum = -0.5 * (square(s_level) + square(s_obs)), mean = 0, variance = 25;
    for (const double seen : y) {
      const double total = variance + square(s_obs), gain = variance / total;
      sum -= 0.5 * (square(seen - mean) / total + std::log(total));
      mean += gain * (seen - mean);
      variance = variance * (1 - gain) + square(s_level);
    }
    return sum;
  };
  return posterior({"s_level", "s_obs"}, {Scale::positive, Scale::positive}, [=](At x, Slope slope) {
    constexpr double h = 1e-5;
    slope[0] += (value(x[0] + h, x[1]) - value(x[0] - h, x[1])) / (2 * h);
    slope[1] += (value(x[0], x[1] + h) - value(x[0], x[1] - h)) / (2 * h);
    return value(x[0], x[1]);
  });
}

// Two hidden states with ordered means; stay.k is the probability to remain in state k. Derivatives from the forward
// and backward probabilities.
class HiddenMarkov {
 public:
  explicit HiddenMarkov(Values y) : y_(std::move(y)) {}
  double operator()(At x, Slope slope) const {
    const std::size_t n = y_.size();
    const double sd = x[2], stay[2] = {x[3], x[4]};
    const double step[2][2] = {{stay[0], 1 - stay[0]}, {1 - stay[1], stay[1]}};
    double value = normal_prior(x[0], 5, slope[0]) + normal_prior(x[1], 5, slope[1]) + normal_prior(sd, 2, slope[2]) +
                   beta_prior(stay[0], 5, 2, slope[3]) + beta_prior(stay[1], 5, 2, slope[4]);
    std::vector<std::array<double, 2>> emit(n), ahead(n), back(n, {1, 1});
    Values scale(n);
    for (std::size_t t = 0; t < n; ++t) {
      for (int k = 0; k < 2; ++k) {
        emit[t][k] = std::exp(-0.5 * square((y_[t] - x[k]) / sd)) / sd;
        const double before = t == 0 ? 0.5 : ahead[t - 1][0] * step[0][k] + ahead[t - 1][1] * step[1][k];
        ahead[t][k] = before * emit[t][k];
      }
      scale[t] = ahead[t][0] + ahead[t][1];
      value += std::log(scale[t]);
      for (double& a : ahead[t]) a /= scale[t];
    }
    for (std::size_t t = n - 1; t-- > 0;)
      for (int k = 0; k < 2; ++k)
        back[t][k] = (step[k][0] * emit[t + 1][0] * back[t + 1][0] + step[k][1] * emit[t + 1][1] * back[t + 1][1]) /
                     scale[t + 1];
    for (std::size_t t = 0; t < n; ++t)
      for (int k = 0; k < 2; ++k) {
        const double share = ahead[t][k] * back[t][k], r = (y_[t] - x[k]) / sd;
        slope[k] += share * r / sd;
        slope[2] += share * (r * r - 1) / sd;
        if (t + 1 == n) continue;
        for (int to = 0; to < 2; ++to)  // the derivative of log p in step[k][to]
          slope[3 + k] += (to == k ? 1 : -1) * ahead[t][k] * emit[t + 1][to] * back[t + 1][to] / scale[t + 1];
      }
    return value;
  }

 private:
  Values y_;
};

std::unique_ptr<Posterior> hidden_markov() {
  Simulation simulation(22);
  Values y;
  for (int state = 0; y.size() < 150;) {
    y.push_back((state ? 1.5 : -0.5) + simulation.normal());
    if (simulation.uniform() > (state ? 0.8 : 0.9)) state = 1 - state;
  }
  return posterior({"mu.1", "mu.2", "sigma", "stay.1", "stay.2"},
                   {Scale::real, Scale::after, Scale::positive, Scale::unit, Scale::unit}, HiddenMarkov(y));
}

// y_t ~ N(mu + phi (y_{t−1} − mu), sigma), phi near 1.
std::unique_ptr<Posterior> near_unit_root() {
  Simulation simulation(23);
  Values y = {2};
  while (y.size() < 80) y.push_back(0.95 * y.back() + simulation.normal());
  return posterior({"mu", "phi", "sigma"}, {Scale::real, Scale::unit, Scale::positive}, [=](At x, Slope slope) {
    double value = normal_prior(x[0], 5, slope[0]) + normal_prior(x[2], 2, slope[2]);
    for (std::size_t t = 1; t < y.size(); ++t) {
      double by_mean = 0;
      value += normal(y[t], x[0] + x[1] * (y[t - 1] - x[0]), x[2], by_mean, slope[2]);
      slope[0] += by_mean * (1 - x[1]), slope[1] += by_mean * (y[t - 1] - x[0]);
    }
    return value;
  });
}

// h_t = mu + phi (h_{t−1} − mu) + sigma z_t, stationary from the first; y_t ~ N(0, exp(h_t / 2)).
std::unique_ptr<Posterior> stochastic_volatility() {
  Simulation simulation(24);
  Values y;
  for (double u = 0; y.size() < 60; u = 0.9 * u + 0.4 * simulation.normal())
    y.push_back(std::exp(0.5 * (u - 0.5)) * simulation.normal());
  std::vector<Scale> scales = positive_at(y.size() + 3, {2});
  scales[1] = Scale::unit;
  return posterior(list({"mu", "phi", "sigma"}, numbered("z", y.size())), scales, [=](At x, Slope slope) {
    const double mu = x[0], phi = x[1], sigma = x[2], first = 1 / std::sqrt(1 - phi * phi);
    double value =
        normal_prior(mu, 2, slope[0]) + beta_prior(phi, 10, 2, slope[1]) + normal_prior(sigma, 0.5, slope[2]);
    Values u(y.size()), by_h(y.size());
    for (std::size_t t = 0; t < y.size(); ++t) {
      u[t] = t == 0 ? sigma * first * x[3] : phi * u[t - 1] + sigma * x[3 + t];
      const double scaled = y[t] * y[t] * std::exp(-mu - u[t]);
      value += -0.5 * (scaled + mu + u[t]) + normal_prior(x[3 + t], 1, slope[3 + t]);
      by_h[t] = 0.5 * (scaled - 1);
      slope[0] += by_h[t];
    }
    double later = 0;
    for (std::size_t t = y.size(); t-- > 0;) {
      later = by_h[t] + phi * later;
      const double scale = t == 0 ? first : 1;
      slope[3 + t] += later * sigma * scale, slope[2] += later * x[3 + t] * scale;
      slope[1] += later * (t == 0 ? u[0] * phi * first * first : u[t - 1]);
    }
    return value;
  });
}

}  // namespace

std::vector<Case> series() {
  return {{"local_level_102", "time series", local_level, "Kalman filter and quadrature",
           [] { return by_grid(local_level_marginal, 400); }, Kept::yes},
          {"hidden_markov", "time series", hidden_markov, "long NUTS run", [] { return by_nuts(hidden_markov); },
           Kept::yes},
          {"near_unit_root", "time series", near_unit_root, "quadrature", [] { return by_grid(near_unit_root, 120); },
           Kept::yes},
          {"stochastic_volatility_63", "time series", stochastic_volatility, "long NUTS run",
           [] { return by_nuts(stochastic_volatility, {.acceptance = 0.95}); }, Kept::yes}};
}

}  // namespace hone::calibration
