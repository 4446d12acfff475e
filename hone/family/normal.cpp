#include "hone/family/normal.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/scalar.hpp"
#include "hone/family/family.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// The position of the i-th diagonal element in a scale.
std::size_t diagonal(Covariance covariance, std::size_t i) {
  return covariance == Covariance::diagonal ? i : packed(i, i);
}

std::size_t dimension_of(Covariance covariance, std::size_t scale_size) {
  if (covariance == Covariance::diagonal) return scale_size;
  std::size_t dimension = 0;
  while (packed_size(dimension) < scale_size) ++dimension;
  return dimension;
}

}  // namespace

std::size_t Normal::scale_size(Covariance covariance, int dimension) {
  const auto size = static_cast<std::size_t>(dimension);
  return covariance == Covariance::diagonal ? size : packed_size(size);
}

void Normal::colour(std::span<const double> u, std::span<double> z) const {
  if (covariance == Covariance::diagonal) {
    for (std::size_t i = 0; i < u.size(); ++i) z[i] = mean[i] + scale[i] * u[i];
  } else {
    multiply_lower(scale, u, z);
    for (std::size_t i = 0; i < u.size(); ++i) z[i] += mean[i];
  }
}

void Normal::whiten(std::span<const double> z, std::span<double> u) const {
  if (covariance == Covariance::diagonal) {
    for (std::size_t i = 0; i < z.size(); ++i) u[i] = (z[i] - mean[i]) / scale[i];
  } else {
    for (std::size_t i = 0; i < z.size(); ++i) u[i] = z[i] - mean[i];
    solve_lower(scale, u, u);
  }
}

void Normal::precondition(std::span<const double> u, std::span<double> v) const {
  if (covariance == Covariance::diagonal) {
    for (std::size_t i = 0; i < u.size(); ++i) v[i] = u[i] / scale[i];
  } else {
    solve_lower_transposed(scale, u, v);
  }
}

double Normal::log_normalizer() const {
  double sum = 0.5 * static_cast<double>(mean.size()) * log_two_pi;
  double product = 1;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    product *= scale[diagonal(covariance, i)];
    if (i % 4 != 3) continue;  // one logarithm for four: they are a price where a model has many data
    sum += std::log(product);
    product = 1;
  }
  return sum + std::log(product);
}

double Normal::variance(std::size_t dimension) const {
  if (covariance == Covariance::diagonal) return square(scale[dimension]);
  double sum = 0;
  for (std::size_t j = 0; j <= dimension; ++j) sum += square(scale[packed(dimension, j)]);
  return sum;
}

void NormalGradient::add_pathwise(double c, std::span<const double> dz, std::span<const double> noise) const {
  for (std::size_t i = 0; i < dz.size(); ++i) {
    mean[i] += c * dz[i];
    if (covariance == Covariance::diagonal)
      scale[i] += c * dz[i] * noise[i];
    else
      add_scaled(c * dz[i], noise.first(i + 1), scale.subspan(packed(i, 0), i + 1));
  }
}

void NormalGradient::add_score(double c, const Normal& normal, std::span<const double> u,
                               std::span<const double> v) const {
  for (std::size_t i = 0; i < u.size(); ++i) {
    mean[i] += c * v[i];  // ∇_μ log q = L⁻ᵀ L⁻¹ (z − μ)
    if (covariance == Covariance::diagonal)
      scale[i] += c * v[i] * u[i];
    else
      add_scaled(c * v[i], u.first(i + 1), scale.subspan(packed(i, 0), i + 1));
  }
  add_log_normalizer(-c, normal);  // ∇_L log q = −Ω + (v uᵀ) ⊙ M
}

void NormalGradient::add_log_normalizer(double c, const Normal& normal) const {
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const std::size_t index = diagonal(covariance, i);
    scale[index] += c / normal.scale[index];  // Ω
  }
}

void floor_scale(Covariance covariance, std::span<double> scale) {
  const std::size_t dimension = dimension_of(covariance, scale.size());
  for (std::size_t i = 0; i < dimension; ++i) {
    double& element = scale[diagonal(covariance, i)];
    if (element < scale_floor) element = scale_floor;  // a NaN stays one, and is reported
  }
}

void append_positive(Covariance covariance, int dimension, std::size_t offset, std::vector<std::size_t>& places) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(dimension); ++i)
    places.push_back(offset + diagonal(covariance, i));
}

void set_isotropic(Covariance covariance, double sd, std::span<double> scale) {
  std::fill(scale.begin(), scale.end(), 0.0);
  const std::size_t dimension = dimension_of(covariance, scale.size());
  for (std::size_t i = 0; i < dimension; ++i) scale[diagonal(covariance, i)] = sd;
}

}  // namespace hone
