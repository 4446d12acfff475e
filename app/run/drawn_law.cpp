#include "app/run/drawn_law.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

constexpr double most_residual = 2e-3;  // nats: log q with six digits is less than this off
constexpr std::size_t most_coefficients = 1000;

std::size_t separate_terms(std::size_t d) { return 2 * d + 1; }
std::size_t all_terms(std::size_t d) { return (d + 1) * (d + 2) / 2; }

// The terms of the polynomial at standardised x: (x_i² − 1) / √2 in place of x_i², which is nearly uncorrelated with
// the others.
void terms_at(std::span<const double> x, std::span<double> terms) {
  std::size_t k = 0;
  terms[k++] = 1;
  for (const double v : x) terms[k++] = v;
  for (const double v : x) terms[k++] = (square(v) - 1) / std::sqrt(2.0);
  for (std::size_t i = 0; i < x.size() && k < terms.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) terms[k++] = x[i] * x[j];
}

// Least squares by the normal equations; nothing if they are singular or if it does not go through the values.
std::optional<std::vector<double>> fitted(const Matrix<double>& x, std::span<const double> values, std::size_t count) {
  const int p = static_cast<int>(count), n = x.cols();
  if (n < 2 * p || count > most_coefficients) return std::nullopt;
  Matrix<double> normal(p, p), terms(p, n);
  std::vector<double> right(count);
  for (int i = 0; i < n; ++i) {
    terms_at(x.column(i), terms.column(i));
    const auto t = terms.column(i);
    for (int j = 0; j < p; ++j) {
      right[j] += t[j] * values[i];
      for (int k = j; k < p; ++k) normal(k, j) += t[k] * t[j];
    }
  }
  for (int j = 0; j < p; ++j)
    for (int k = j; k < p; ++k) normal(j, k) = normal(k, j);
  std::vector<double> lower;
  try {
    lower = cholesky(normal);
  } catch (const InputError&) {
    return std::nullopt;
  }
  solve_lower(lower, right, right);
  solve_lower_transposed(lower, right, right);
  double residual = 0;
  for (int i = 0; i < n; ++i) {
    double value = 0;
    for (int j = 0; j < p; ++j) value += terms(j, i) * right[j];
    residual = std::max(residual, std::abs(value - values[i]));
  }
  if (!(residual <= most_residual)) return std::nullopt;
  return right;
}

}  // namespace

Quadratic::Quadratic(std::vector<double> centre, std::vector<double> scale, std::vector<double> coefficients)
    : centre_(std::move(centre)), scale_(std::move(scale)), coefficients_(std::move(coefficients)) {}

double Quadratic::operator()(std::span<const double> z) const {
  std::vector<double> x(z.size()), terms(coefficients_.size());
  for (std::size_t i = 0; i < z.size(); ++i) x[i] = (z[i] - centre_[i]) / scale_[i];
  terms_at(x, terms);
  double value = 0;
  for (std::size_t k = 0; k < terms.size(); ++k) value += coefficients_[k] * terms[k];
  return value;
}

std::optional<Quadratic> gaussian_through(MatrixView<const double> z, std::span<const double> log_q) {
  const int d = z.rows(), n = z.cols();
  std::vector<double> centre(d), scale(d);
  Matrix<double> x(d, n);
  for (int k = 0; k < d; ++k) {
    Moments m;
    for (int i = 0; i < n; ++i) m.add(z(k, i));
    centre[k] = m.mean();
    scale[k] = m.sd();
    for (int i = 0; i < n; ++i) x(k, i) = (z(k, i) - centre[k]) / scale[k];
  }
  for (const std::size_t count : {separate_terms(d), all_terms(d)})
    if (const auto found = fitted(x, log_q, count)) return Quadratic(centre, scale, *found);
  return std::nullopt;
}

DrawnFamily::DrawnFamily(MatrixView<const double> draws, const Whitening& whitening, std::optional<Quadratic> log_q)
    : Family(draws.rows()),
      draws_(draws),
      whitening_(whitening),
      log_q_(std::move(log_q)),
      normal_(draws.rows(), Covariance::diagonal) {}

void DrawnFamily::draw(const RandomSource&, std::uint32_t, Draws& out, std::uint32_t first) const {
  for (int c = 0; c < out.count(); ++c)
    copy(draws_.column((static_cast<int>(first) + c) % draws_.cols()), out.z.column(c));
  std::ranges::fill(out.weight, 1.0 / out.count());
}

void DrawnFamily::log_density(MatrixView<const double> e, Want want, std::span<double> value,
                              MatrixView<double> gradient) const {
  if (!log_q_) return normal_.log_density(e, want, value, gradient);
  if (wants_gradient(want)) throw std::logic_error("only the values of log q are known");
  std::vector<double> z(e.rows());
  for (int i = 0; i < e.cols(); ++i) {
    whitening_.to_z(e.column(i), z);
    value[i] = (*log_q_)(z) + whitening_.log_det();
  }
}

void DrawnFamily::add_pathwise(const Draws&, MatrixView<const double>, std::span<const double>,
                               std::span<double>) const {
  throw std::logic_error("draws have no parameters");
}
void DrawnFamily::add_score(MatrixView<const double>, std::span<const double>, std::span<double>) const {
  throw std::logic_error("draws have no parameters");
}

}  // namespace hone
