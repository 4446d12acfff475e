#include <cmath>
#include <numeric>

#include "bench/calibration/densities.hpp"

namespace hone::calibration {
namespace {

// Stick-breaking: x_k = (1 − x_1 − … − x_{k−1}) v_k, v_k = sigmoid(z_k − log(K − k)), k = 1 … K − 1.
double broken(At z, std::size_t k) { return sigmoid(z[k] - std::log(static_cast<double>(z.size() - k))); }
void to_simplex(At z, Slope x) {
  double left = 1;
  for (std::size_t k = 0; k < z.size(); ++k) x[k] = left * broken(z, k), left -= x[k];
  x[z.size()] = left;
}

// Under Dirichlet(alpha), v_k ~ Beta(alpha_k, alpha_{k+1} + … + alpha_K), independent.
Case dirichlet(const std::string& name, const Values& alpha) {
  const auto density = [=](At z, Slope gradient) {
    double value = 0, rest = std::accumulate(alpha.begin(), alpha.end(), 0.0);
    for (std::size_t k = 0; k < z.size(); ++k) {
      rest -= alpha[k];
      const double v = broken(z, k), shifted = z[k] - std::log(static_cast<double>(z.size() - k));
      value -= alpha[k] * softplus(-shifted) + rest * softplus(shifted);
      gradient[k] = alpha[k] * (1 - v) - rest * v;
    }
    return value;
  };
  const auto names = numbered("x", alpha.size());
  const auto truth = [=] {
    const double total = std::accumulate(alpha.begin(), alpha.end(), 0.0);
    return closed_form(names, [&](std::size_t i, Known& k) {
      k.centre = alpha[i] / total;
      k.spread = std::sqrt(k.centre * (1 - k.centre) / (total + 1));
    });
  };
  return {.name = name,
          .kind = "constrained",
          .make = [=] { return make_posterior(density, numbered("z", alpha.size() - 1), names, to_simplex); },
          .how = "closed form",
          .truth = truth};
}

// A correlation matrix L Lᵀ from partial correlations c_ij = tanh(y_ij): L_ij = c_ij √(1 − L_i1² − … − L_{i,j−1}²).
class Correlation {
 public:
  Correlation(std::size_t size, At y) : size_(size), l_(size * size), left_(size * size) {
    for (std::size_t i = 0, at = 0; i < size; ++i) {
      double left = 1;
      for (std::size_t j = 0; j < i; ++j) {
        left_[i * size + j] = left;
        partial_.push_back(std::tanh(y[at++]));
        l_[i * size + j] = partial_.back() * std::sqrt(left);
        left *= 1 - square(partial_.back());
      }
      l_[i * size + i] = std::sqrt(left);
    }
  }
  double l(std::size_t i, std::size_t j) const { return l_[i * size_ + j]; }
  double r(std::size_t i, std::size_t j) const {
    double sum = 0;
    for (std::size_t k = 0; k <= std::min(i, j); ++k) sum += l(i, k) * l(j, k);
    return sum;
  }
  // log LKJ(eta) with the transform's Jacobian: c_ij in column j is 2 Beta(b, b) − 1 with b = eta + (size − 2 − j) / 2.
  double prior(double eta, Slope by_y) const {
    double value = 0;
    for (std::size_t i = 0, at = 0; i < size_; ++i)
      for (std::size_t j = 0; j < i; ++j, ++at) {
        const double b = eta + 0.5 * (static_cast<double>(size_) - 2 - static_cast<double>(j));
        value += b * std::log1p(-square(partial_[at]));
        by_y[at] -= 2 * b * partial_[at];
      }
    return value;
  }
  // Adds to by_y what the derivatives by_l in L give.
  void backward(const Values& by_l, Slope by_y) const {
    std::size_t at = partial_.size();
    for (std::size_t i = size_; i-- > 0;) {
      double by_log_left = 0.5 * l(i, i) * by_l[i * size_ + i];
      for (std::size_t j = i; j-- > 0;) {
        const double c = partial_[--at], by_lij = by_l[i * size_ + j];
        by_y[at] += by_lij * std::sqrt(left_[i * size_ + j]) * (1 - c * c) - 2 * c * by_log_left;
        by_log_left += 0.5 * l(i, j) * by_lij;
      }
    }
  }

 private:
  std::size_t size_;
  Values l_, left_, partial_;
};

std::vector<std::string> pairs(const std::string& name, std::size_t size) {
  std::vector<std::string> names;
  for (std::size_t i = 2; i <= size; ++i)
    for (std::size_t j = 1; j < i; ++j) names.push_back(name + "." + std::to_string(i) + "." + std::to_string(j));
  return names;
}

void correlations(const Correlation& correlation, std::size_t size, Slope out) {
  for (std::size_t i = 0, at = 0; i < size; ++i)
    for (std::size_t j = 0; j < i; ++j) out[at++] = correlation.r(i, j);
}

// Correlations under LKJ(eta) are 2 Beta(a, a) − 1 with a = eta + (size − 2) / 2, each.
Case lkj(const std::string& name, std::size_t size, double eta) {
  const auto density = [=](At y, Slope gradient) {
    std::fill(gradient.begin(), gradient.end(), 0.0);
    return Correlation(size, y).prior(eta, gradient);
  };
  const auto constrain = [=](At y, Slope x) { correlations(Correlation(size, y), size, x); };
  const auto truth = [=] {
    return closed_form(pairs("R", size), [=](std::size_t, Known& k) {
      k.spread = 1 / std::sqrt(2 * eta + static_cast<double>(size) - 1);
    });
  };
  return {.name = name,
          .kind = "constrained",
          .make = [=] { return make_posterior(density, pairs("y", size), pairs("R", size), constrain); },
          .how = "closed form",
          .truth = truth};
}

// Normal data with unknown sds and correlations.
std::unique_ptr<Posterior> covariance() {
  constexpr std::size_t size = 3, count = 25;
  Simulation simulation(51);
  std::vector<Values> data;
  for (std::size_t n = 0; n < count; ++n) {
    const Values e = simulation.normals(size);
    data.push_back({e[0], 2 * (0.8 * e[0] + 0.6 * e[1]), 0.5 * (-0.3 * e[1] + e[2])});
  }
  const auto density = [=](At z, Slope gradient) {
    std::fill(gradient.begin(), gradient.end(), 0.0);
    const Correlation correlation(size, z.subspan(size));
    double value = correlation.prior(2, gradient.subspan(size));
    Values by_l(size * size);
    for (std::size_t i = 0; i < size; ++i) {
      double by_sd = 0;
      value += student_prior(std::exp(z[i]), 3, 2.5, by_sd) + z[i];
      gradient[i] += by_sd * std::exp(z[i]) + 1 - count;
      value -= count * (z[i] + std::log(correlation.l(i, i)));
      by_l[i * size + i] -= count / correlation.l(i, i);
    }
    for (const Values& row : data) {
      double u[size], w[size], a[size];  // scaled data, L⁻¹ u, L⁻ᵀ w
      for (std::size_t i = 0; i < size; ++i) {
        w[i] = u[i] = row[i] * std::exp(-z[i]);
        for (std::size_t j = 0; j < i; ++j) w[i] -= correlation.l(i, j) * w[j];
        w[i] /= correlation.l(i, i);
        value -= 0.5 * w[i] * w[i];
      }
      for (std::size_t i = size; i-- > 0;) {
        a[i] = w[i];
        for (std::size_t j = i + 1; j < size; ++j) a[i] -= correlation.l(j, i) * a[j];
        a[i] /= correlation.l(i, i);
        gradient[i] += a[i] * u[i];
      }
      for (std::size_t i = 0; i < size; ++i)
        for (std::size_t j = 0; j <= i; ++j) by_l[i * size + j] += a[i] * w[j];
    }
    correlation.backward(by_l, gradient.subspan(size));
    return value;
  };
  const auto constrain = [](At z, Slope x) {
    for (std::size_t i = 0; i < size; ++i) x[i] = std::exp(z[i]);
    correlations(Correlation(size, z.subspan(size)), size, x.subspan(size));
  };
  return make_posterior(density, list(numbered("log_sd", size), pairs("y", size)),
                        list(numbered("sd", size), pairs("R", size)), constrain);
}

}  // namespace

std::vector<Case> constrained() {
  return {
      dirichlet("simplex_5", {3, 8, 1, 5, 2}), dirichlet("simplex_sparse_4", {0.5, 0.5, 0.5, 0.5}),
      lkj("correlation_lkj_4", 4, 2),
      Case{"covariance_3", "constrained", covariance, "long NUTS run", [] { return by_nuts(covariance); }, Kept::yes}};
}

}  // namespace hone::calibration
