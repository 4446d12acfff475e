#include "hone/family/mixture.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {

// What every component says of one point z: u_k, v_k = Σ_k⁻¹ (z − μ_k) and q(k | z). The storage grows once per thread.
struct MixtureFamily::Posterior {
  explicit Posterior(const MixtureFamily& family) : q(family) {
    thread_local std::vector<double> storage;
    const auto k = static_cast<std::size_t>(family.components_);
    const auto d = static_cast<std::size_t>(family.dimension());
    storage.resize(3 * k + 2 * k * d);
    std::span<double> rest(storage);
    const auto take = [&rest](std::size_t size) {
      const std::span<double> part = rest.first(size);
      rest = rest.subspan(size);
      return part;
    };
    log_weight = take(k);
    offset = take(k);
    probability = take(k);
    u = MatrixView<double>(take(k * d).data(), family.dimension(), family.components_);
    v = MatrixView<double>(take(k * d).data(), family.dimension(), family.components_);
    family.log_weights(log_weight);
    for (std::size_t i = 0; i < k; ++i) offset[i] = log_weight[i] - family.normal(static_cast<int>(i)).log_normalizer();
  }

  // Fills u, v and q(k | z); returns log q(z).
  double at(std::span<const double> z) {
    for (int k = 0; k < q.components_; ++k) {
      const Normal component = q.normal(k);
      component.whiten(z, u.column(k));
      component.precondition(u.column(k), v.column(k));
      double quadratic = 0;
      for (const double x : u.column(k)) quadratic += square(x);
      probability[k] = offset[k] - 0.5 * quadratic;
    }
    const double total = log_sum_exp(probability);
    for (double& p : probability) p = std::exp(p - total);
    return total;
  }

  const MixtureFamily& q;
  std::span<double> log_weight, offset, probability;
  MatrixView<double> u, v;
};

MixtureFamily::MixtureFamily(int dimension, int components, Covariance covariance)
    : Family(dimension), components_(components), covariance_(covariance) {
  if (components < 1) throw InputError("a mixture needs at least one component");
  for (int k = 0; k < components; ++k) {
    const std::string index = "[" + std::to_string(k) + "]";
    add_slice("mean" + index, Role::location, dimension);
    add_slice("scale" + index, Role::scale, Normal::scale_size(covariance, dimension));
  }
  add_slice("logits", Role::weight, components);
  for (int k = 0; k < components; ++k) set_isotropic(covariance, 1, scale(k));
}

std::size_t MixtureFamily::stride() const {
  return static_cast<std::size_t>(dimension()) + Normal::scale_size(covariance_, dimension());
}

std::span<double> MixtureFamily::mean(int component) { return split(component, parameters()).mean; }
std::span<double> MixtureFamily::scale(int component) { return split(component, parameters()).scale; }
std::span<double> MixtureFamily::logits() { return parameters().last(components_); }

NormalGradient MixtureFamily::split(int component, std::span<double> gradient) const {
  const auto part = gradient.subspan(static_cast<std::size_t>(component) * stride(), stride());
  const auto size = static_cast<std::size_t>(dimension());
  return {covariance_, part.first(size), part.subspan(size)};
}

Normal MixtureFamily::normal(int component) const {
  const auto part = parameters().subspan(static_cast<std::size_t>(component) * stride(), stride());
  const auto size = static_cast<std::size_t>(dimension());
  return {covariance_, part.first(size), part.subspan(size)};
}

void MixtureFamily::log_weights(std::span<double> out) const {
  const auto logit = parameters().last(components_);
  const double total = log_sum_exp(logit);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = logit[k] - total;
}

void MixtureFamily::set_log_weights(std::span<const double> log_weight) {
  std::ranges::copy(log_weight, logits().begin());
}

void MixtureFamily::draw(const RandomSource& random, std::uint32_t iteration, Draws& draws,
                         std::uint32_t first_datum) const {
  thread_local std::vector<double> log_weight;
  log_weight.resize(components_);
  log_weights(log_weight);
  for (int chain = 0; chain < draws.count(); ++chain) {
    const int k = draws.component_of(chain);
    const auto datum = first_datum + static_cast<std::uint32_t>(chain);
    random.normals({Purpose::draw, iteration, datum}, draws.noise.column(chain));
    normal(k).colour(draws.noise.column(chain), draws.z.column(chain));
    draws.weight[chain] = std::exp(log_weight[k]) / draws.per_component;
  }
}

void MixtureFamily::log_density(MatrixView<const double> z, Want want, std::span<double> value,
                                MatrixView<double> gradient) const {
  Posterior posterior(*this);
  for (int chain = 0; chain < z.cols(); ++chain) {
    const double log_q = posterior.at(z.column(chain));
    if (wants_value(want)) value[chain] = log_q;
    if (!wants_gradient(want)) continue;
    // ∇_z log q = Σ_k q(k | z) ∇_z log q_k (appendix 3)
    const std::span<double> out = gradient.column(chain);
    std::fill(out.begin(), out.end(), 0.0);
    for (int k = 0; k < components_; ++k)
      for (int i = 0; i < dimension(); ++i) out[i] -= posterior.probability[k] * posterior.v(i, k);
  }
}

void MixtureFamily::add_pathwise(const Draws& draws, MatrixView<const double> dz, std::span<const double> coefficient,
                                 std::span<double> gradient) const {
  for (int chain = 0; chain < draws.count(); ++chain)  // eq2:mixture_grad_elbo_thetak
    split(draws.component_of(chain), gradient)
        .add_pathwise(coefficient[chain], dz.column(chain), draws.noise.column(chain));
}

void MixtureFamily::add_score(MatrixView<const double> z, std::span<const double> coefficient,
                              std::span<double> gradient) const {
  Posterior posterior(*this);
  const std::span<double> logit_gradient = gradient.last(components_);
  for (int chain = 0; chain < z.cols(); ++chain) {
    const double c = coefficient[chain];
    posterior.at(z.column(chain));
    for (int k = 0; k < components_; ++k) {
      const auto index = static_cast<std::size_t>(k);
      const double share = posterior.probability[index];
      split(k, gradient).add_score(c * share, normal(k), posterior.u.column(k), posterior.v.column(k));
      logit_gradient[index] += c * (share - std::exp(posterior.log_weight[index]));
    }
  }
}

void MixtureFamily::add_draw_score(const Draws& draws, std::span<const double> coefficient,
                                   std::span<double> gradient) const {
  thread_local std::vector<double> v;
  v.resize(dimension());
  for (int chain = 0; chain < draws.count(); ++chain) {
    const int k = draws.component_of(chain);
    const Normal component = normal(k);
    component.precondition(draws.noise.column(chain), v);
    split(k, gradient).add_score(coefficient[chain], component, draws.noise.column(chain), v);
  }
  add_component_score(draws, coefficient, gradient);
}

void MixtureFamily::add_component_score(const Draws& draws, std::span<const double> coefficient,
                                        std::span<double> gradient) const {
  const std::span<double> logit_gradient = gradient.last(components_);
  double total = 0;
  for (int chain = 0; chain < draws.count(); ++chain) {
    const double c = coefficient[chain];
    logit_gradient[draws.component_of(chain)] += c;
    total += c;
  }
  thread_local std::vector<double> log_weight;
  log_weight.resize(components_);
  log_weights(log_weight);
  for (std::size_t k = 0; k < log_weight.size(); ++k) logit_gradient[k] -= total * std::exp(log_weight[k]);
}

void MixtureFamily::project() {
  for (int k = 0; k < components_; ++k) floor_scale(covariance_, scale(k));
}

std::vector<std::size_t> MixtureFamily::positive_parameters() const {
  std::vector<std::size_t> result;
  for (std::size_t k = 0; k < static_cast<std::size_t>(components_); ++k)
    append_positive(covariance_, dimension(), k * stride() + static_cast<std::size_t>(dimension()), result);
  return result;
}

// By the mean of the mixture and the Cholesky factor of the covariance within its components.
std::optional<LocationScale> MixtureFamily::standardize() {
  if (covariance_ != Covariance::full) return std::nullopt;
  const int d = dimension();
  Matrix<double> covariance(d, d);
  std::vector<double> weight(components_), mean(d);
  log_weights(weight);
  for (int k = 0; k < components_; ++k) {
    const Normal component = normal(k);
    const double w = std::exp(weight[k]);
    for (int i = 0; i < d; ++i) {
      mean[i] += w * component.mean[i];
      for (int j = 0; j <= i; ++j)
        for (int l = 0; l <= j; ++l)
          covariance(i, j) += w * component.scale[packed(i, l)] * component.scale[packed(j, l)];
    }
  }
  const std::vector<double> lower = cholesky(covariance);
  for (int k = 0; k < components_; ++k) {
    const std::span<double> centre = this->mean(k), factor = scale(k);
    for (std::size_t i = 0; i < centre.size(); ++i) centre[i] -= mean[i];
    solve_lower(lower, centre, centre);
    copy(divide_lower(lower, factor), factor);
  }
  return LocationScale{Covariance::full, mean, lower};
}

void MixtureFamily::moments(std::span<double> mean, std::span<double> sd) const {
  std::vector<double> log_weight(components_);
  log_weights(log_weight);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    double first = 0;
    for (int k = 0; k < components_; ++k) first += std::exp(log_weight[k]) * normal(k).mean[i];
    double second = 0;
    for (int k = 0; k < components_; ++k) {
      const Normal component = normal(k);
      second += std::exp(log_weight[k]) * (component.variance(i) + square(component.mean[i] - first));
    }
    mean[i] = first;
    sd[i] = std::sqrt(second);
  }
}

}  // namespace hone
