#include <cmath>

#include "bench/calibration/densities.hpp"

namespace hone::calibration {
namespace {

// Variances `variance` along the axes of a reflection H = I − 2 v vᵀ: covariance H diag(variance) H.
class Reflected {
 public:
  Reflected(Values variance, std::uint64_t seed) : variance_(std::move(variance)) {
    v_ = Simulation(seed).normals(variance_.size());
    double norm = 0;
    for (const double x : v_) norm += x * x;
    for (double& x : v_) x /= std::sqrt(norm);
  }
  double operator()(At z, Slope gradient) const {
    reflect(z, gradient);
    double value = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      value -= 0.5 * square(gradient[i]) / variance_[i];
      gradient[i] /= -variance_[i];
    }
    reflect(gradient, gradient);
    return value;
  }
  double sd(std::size_t i) const {
    double sum = 0;
    for (std::size_t k = 0; k < v_.size(); ++k) sum += square((i == k ? 1.0 : 0.0) - 2 * v_[i] * v_[k]) * variance_[k];
    return std::sqrt(sum);
  }

 private:
  void reflect(At from, Slope to) const {
    double along = 0;
    for (std::size_t i = 0; i < v_.size(); ++i) along += v_[i] * from[i];
    for (std::size_t i = 0; i < v_.size(); ++i) to[i] = from[i] - 2 * along * v_[i];
  }
  Values variance_, v_;
};

// Variances from 1/√condition to √condition, evenly on the log scale.
Case reflected(const std::string& name, std::size_t dimension, double condition, std::uint64_t seed) {
  Values variance(dimension);
  for (std::size_t i = 0; i < dimension; ++i)
    variance[i] = std::pow(condition, static_cast<double>(i) / static_cast<double>(dimension - 1) - 0.5);
  const Reflected density(variance, seed);
  const auto names = numbered("x", dimension);
  return {.name = name,
          .kind = "Gaussian",
          .make = [=] { return make_posterior(density, names); },
          .how = "closed form",
          .truth = [=] { return closed_form(names, [&](std::size_t i, Known& k) { k.spread = density.sd(i); }); }};
}

// A stationary autoregression: correlations 0.9^|i − j|, means i / 100, sds from 0.1 to 10.
struct Autoregression {
  Values sd;
  double operator()(At z, Slope gradient) const {
    constexpr double rho = 0.9, precision = 1 / (1 - rho * rho);
    double before = z[0] / sd[0], sum = before * before;
    gradient[0] = -before / sd[0];
    for (std::size_t i = 1; i < z.size(); ++i) {
      const double now = (z[i] - mean(i)) / sd[i], innovation = now - rho * before;
      sum += precision * innovation * innovation;
      gradient[i] = -precision * innovation / sd[i];
      gradient[i - 1] += precision * rho * innovation / sd[i - 1];
      before = now;
    }
    return -0.5 * sum;
  }
  static double mean(std::size_t i) { return static_cast<double>(i) / 100; }
};

Case autoregression(const std::string& name, std::size_t dimension) {
  Autoregression density;
  for (std::size_t i = 0; i < dimension; ++i)
    density.sd.push_back(0.1 * std::pow(100.0, static_cast<double>(i) / static_cast<double>(dimension - 1)));
  const auto names = numbered("x", dimension);
  const auto truth = [=] {
    return closed_form(names, [&](std::size_t i, Known& k) { k.centre = density.mean(i), k.spread = density.sd[i]; });
  };
  return {.name = name,
          .kind = "Gaussian",
          .make = [=] { return make_posterior(density, names); },
          .how = "closed form",
          .truth = truth};
}

}  // namespace

std::vector<Case> gaussians() {
  return {reflected("gaussian_2_ridge", 2, 1e6, 1),           reflected("gaussian_10", 10, 100, 2),
          reflected("gaussian_20_condition_1e6", 20, 1e6, 3), reflected("gaussian_50_condition_1e8", 50, 1e8, 4),
          autoregression("autoregression_500", 500),          autoregression("autoregression_1000", 1000),
          autoregression("autoregression_5000", 5000)};
}

}  // namespace hone::calibration
