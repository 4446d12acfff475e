#include <cmath>

#include "bench/calibration/densities.hpp"

namespace hone::calibration {
namespace {

// g = (1 − exp(−u t)) / u and its derivative in u, also at u = 0.
double saturation(double u, double t, double& by_u) {
  if (std::abs(u * t) < 1e-4) {
    by_u = -0.5 * t * t + u * t * t * t / 3;
    return t - 0.5 * u * t * t;
  }
  const double g = -std::expm1(-u * t) / u;
  by_u = (t * std::exp(-u * t) - g) / u;
  return g;
}

// One compartment with absorption: dA/dt = −ka A, dC/dt = ka A / V − ke C, whose solution is
// C = dose / V · ka exp(−ke t) (1 − exp(−(ka − ke) t)) / (ka − ke). First seen late, so that ka has a long
// tail; ka > ke, or else the two could change places.
std::unique_ptr<Posterior> pharmacokinetics() {
  constexpr double dose = 100;
  const Values times = {1.5, 2, 3, 4, 6, 8, 12, 18};
  Simulation simulation(61);
  Values y;
  double ignored = 0;
  for (const double t : times)
    y.push_back(std::log(dose / 20 * 2.5 * std::exp(-0.25 * t) * saturation(2.25, t, ignored)) +
                0.2 * simulation.normal());
  const std::vector<Scale> scales = {Scale::positive, Scale::after, Scale::positive, Scale::positive};
  return posterior({"ke", "ka", "V", "sigma"}, scales, [=](At x, Slope slope) {
    const double ke = x[0], ka = x[1], v = x[2], sigma = x[3];
    double value = lognormal_prior(ka, 0.5, 1.2, slope[1]) + lognormal_prior(ke, -1.5, 0.7, slope[0]) +
                   lognormal_prior(v, 3, 1, slope[2]) + normal_prior(sigma, 0.5, slope[3]);
    for (std::size_t n = 0; n < times.size(); ++n) {
      double by_u = 0, by_mean = 0;
      const double t = times[n], g = saturation(ka - ke, t, by_u);
      value += normal(y[n], std::log(dose * ka / v * g) - ke * t, sigma, by_mean, slope[3]);
      slope[1] += by_mean * (1 / ka + by_u / g);
      slope[0] -= by_mean * (t + by_u / g);
      slope[2] -= by_mean / v;
    }
    return value;
  });
}

// dN/dt = r N (1 − N / K): N = K / (1 + (K / N0 − 1) exp(−r t)). Only the early part of the curve is seen.
std::unique_ptr<Posterior> growth() {
  Simulation simulation(62);
  Values y;
  const auto curve = [](double n0, double r, double k, double t) { return k / (1 + (k / n0 - 1) * std::exp(-r * t)); };
  for (int t = 0; t < 12; ++t) y.push_back(std::log(curve(2, 0.5, 60, t)) + 0.15 * simulation.normal());
  return posterior({"N0", "r", "K", "sigma"}, positive_at(4, {0, 1, 2, 3}), [=](At x, Slope slope) {
    double value = lognormal_prior(x[0], 1, 1, slope[0]) + lognormal_prior(x[1], -1, 1, slope[1]) +
                   lognormal_prior(x[2], 4, 0.7, slope[2]) + normal_prior(x[3], 0.5, slope[3]);
    for (std::size_t t = 0; t < y.size(); ++t) {
      const double time = static_cast<double>(t), fall = std::exp(-x[1] * time), odds = (x[2] / x[0] - 1) * fall;
      double by = 0;
      value += normal(y[t], std::log(curve(x[0], x[1], x[2], time)), x[3], by, slope[3]);
      slope[0] += by / (1 + odds) * fall * x[2] / square(x[0]);
      slope[1] += by / (1 + odds) * odds * time;
      slope[2] += by * (1 / x[2] - fall / x[0] / (1 + odds));
    }
    return value;
  });
}

// The lower Cholesky factor of a positive definite matrix (n, n), in place.
void factorise(std::vector<Values>& k) {
  for (std::size_t j = 0; j < k.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) k[j][j] -= square(k[j][i]);
    if (!(k[j][j] > 0)) throw Error("not positive definite");
    k[j][j] = std::sqrt(k[j][j]);
    for (std::size_t i = j + 1; i < k.size(); ++i) {
      for (std::size_t l = 0; l < j; ++l) k[i][j] -= k[i][l] * k[j][l];
      k[i][j] /= k[j][j];
    }
  }
}

// K⁻¹ from its factor.
std::vector<Values> inverse_of(const std::vector<Values>& l) {
  const std::size_t n = l.size();
  std::vector<Values> half(n, Values(n)), result(n, Values(n));  // half: L⁻¹
  for (std::size_t c = 0; c < n; ++c)
    for (std::size_t i = c; i < n; ++i) {
      double sum = i == c ? 1 : 0;
      for (std::size_t k = c; k < i; ++k) sum -= l[i][k] * half[k][c];
      half[i][c] = sum / l[i][i];
    }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = std::max(i, j); k < n; ++k) result[i][j] += half[k][i] * half[k][j];
  return result;
}

double kernel(double distance, double rho) { return std::exp(-0.5 * square(distance / rho)); }

// Hyperparameters of a Gaussian process with noise: K_ij = alpha² exp(−(x_i − x_j)² / (2 rho²)) + sigma² [i = j].
std::unique_ptr<Posterior> process() {
  constexpr std::size_t n = 16;
  Simulation simulation(63);
  Values at, y;
  for (std::size_t i = 0; i < n; ++i) {
    at.push_back(static_cast<double>(i) / 2);
    y.push_back(std::sin(at[i]) + 0.3 * simulation.normal());
  }
  return posterior({"rho", "alpha", "sigma"}, positive_at(3, {0, 1, 2}), [=](At x, Slope slope) {
    double value =
        inverse_gamma_prior(x[0], 5, 5, slope[0]) + normal_prior(x[1], 1, slope[1]) + normal_prior(x[2], 1, slope[2]);
    std::vector<Values> k(n, Values(n)), smooth(n, Values(n));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        smooth[i][j] = square(x[1]) * kernel(at[i] - at[j], x[0]);
        k[i][j] = smooth[i][j] + (i == j ? square(x[2]) : 0);
      }
    factorise(k);
    for (std::size_t i = 0; i < n; ++i) value -= std::log(k[i][i]);
    const auto inverse = inverse_of(k);
    Values solved(n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) solved[i] += inverse[i][j] * y[j];
    for (std::size_t i = 0; i < n; ++i) {
      value -= 0.5 * y[i] * solved[i];
      slope[2] += (square(solved[i]) - inverse[i][i]) * x[2];
      for (std::size_t j = 0; j < n; ++j) {
        const double by_k = 0.5 * (solved[i] * solved[j] - inverse[i][j]);
        slope[0] += by_k * smooth[i][j] * square(at[i] - at[j]) / (x[0] * x[0] * x[0]);
        slope[1] += by_k * smooth[i][j] * 2 / x[1];
      }
    }
    return value;
  });
}

// Counts with a latent process of known length scale: y_i ~ Poisson(exp(mu + alpha (L z)_i)).
std::unique_ptr<Posterior> latent_process() {
  constexpr std::size_t n = 20;
  std::vector<Values> l(n, Values(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      l[i][j] = kernel(static_cast<double>(i) - static_cast<double>(j), 3) + (i == j ? 1e-4 : 0);
  factorise(l);
  Simulation simulation(64);
  const Values e = simulation.normals(n);
  Values y(n);
  for (std::size_t i = 0; i < n; ++i) {
    double f = 1;
    for (std::size_t j = 0; j <= i; ++j) f += 0.8 * l[i][j] * e[j];
    y[i] = simulation.poisson(std::exp(f));
  }
  return posterior(list({"mu", "alpha"}, numbered("z", n)), positive_at(n + 2, {1}), [=](At x, Slope slope) {
    double value = normal_prior(x[0], 2, slope[0]) + normal_prior(x[1], 1, slope[1]);
    for (std::size_t j = 0; j < n; ++j) value += normal_prior(x[2 + j], 1, slope[2 + j]);
    for (std::size_t i = 0; i < n; ++i) {
      double f = 0, by = 0;
      for (std::size_t j = 0; j <= i; ++j) f += l[i][j] * x[2 + j];
      value += poisson_log(y[i], x[0] + x[1] * f, by);
      slope[0] += by, slope[1] += by * f;
      for (std::size_t j = 0; j <= i; ++j) slope[2 + j] += by * x[1] * l[i][j];
    }
    return value;
  });
}

}  // namespace

std::vector<Case> curves() {
  const LongRun tailed{.draws = 12'000, .acceptance = 0.97, .by_quantiles = {"ka"}};
  return {{"pharmacokinetics_4", "ODE", pharmacokinetics, "long NUTS run",
           [=] { return by_nuts(pharmacokinetics, tailed); }, Kept::yes},
          {"growth_4", "ODE", growth, "long NUTS run", [] { return by_nuts(growth); }, Kept::yes},
          {"gaussian_process_3", "Gaussian process", process, "long NUTS run",
           [] { return by_nuts(process, {.acceptance = 0.95}); }, Kept::yes},
          {"gaussian_process_counts_22", "Gaussian process", latent_process, "long NUTS run",
           [] { return by_nuts(latent_process, {.draws = 12'000, .acceptance = 0.98}); }, Kept::yes}};
}

}  // namespace hone::calibration
