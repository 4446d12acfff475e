#include "hone/target/toys.hpp"

#include <array>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/triangular.hpp"

namespace hone {
namespace {

// Calls at(z, gradient) for every column, with an empty gradient where none is wanted.
template <class At>
void each_column(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient, At at) {
  for (int chain = 0; chain < z.cols(); ++chain) {
    const std::span<double> out = wants_gradient(want) ? gradient.column(chain) : std::span<double>();
    const double result = at(z.column(chain), out);
    if (wants_value(want)) value[chain] = result;
  }
}

GaussianTarget unit_gaussian(std::vector<double> mean, double correlation) {
  Matrix<double> covariance(2, 2);
  covariance(0, 0) = covariance(1, 1) = 1;
  covariance(0, 1) = covariance(1, 0) = correlation;
  return {std::move(mean), covariance};
}

}  // namespace

GaussianTarget::GaussianTarget(std::vector<double> mean, const Matrix<double>& covariance)
    : mean_(std::move(mean)), precision_(covariance.rows(), covariance.cols()) {
  const int dimension = covariance.rows();
  if (dimension < 1 || covariance.cols() != dimension || mean_.size() != static_cast<std::size_t>(dimension))
    throw InputError("a Gaussian needs a mean of length D and a covariance of D by D");
  for (int i = 0; i < dimension; ++i)
    for (int j = 0; j < i; ++j)
      if (covariance(i, j) != covariance(j, i)) throw InputError("a covariance must be symmetric");
  const std::vector<double> lower = cholesky(covariance);
  log_normalizer_ = 0.5 * dimension * log_two_pi;
  for (int i = 0; i < dimension; ++i) {
    const auto row = static_cast<std::size_t>(i);
    log_normalizer_ += std::log(lower[packed(row, row)]);
    const std::span<double> column = precision_.column(i);
    column[row] = 1;
    solve_lower(lower, column, column);
    solve_lower_transposed(lower, column, column);
  }
}

double GaussianTarget::at(std::span<const double> z, std::span<double> gradient) const {
  const auto dimension = static_cast<int>(mean_.size());
  double quadratic = 0;
  for (int i = 0; i < dimension; ++i) {
    const std::span<const double> row = precision_.column(i);  // symmetric: its columns are its rows
    double derivative = 0;
    for (std::size_t j = 0; j < mean_.size(); ++j) derivative -= row[j] * (z[j] - mean_[j]);
    const auto index = static_cast<std::size_t>(i);
    quadratic -= derivative * (z[index] - mean_[index]);
    if (!gradient.empty()) gradient[index] = derivative;
  }
  return -0.5 * quadratic - log_normalizer_;
}

void GaussianTarget::compute(MatrixView<const double> z, Want want, std::span<double> value,
                             MatrixView<double> gradient) const {
  each_column(z, want, value, gradient, [this](auto point, auto out) { return at(point, out); });
}

MixtureTarget::MixtureTarget(std::vector<double> weights, std::vector<GaussianTarget> components)
    : log_weights_(std::move(weights)), components_(std::move(components)) {
  if (components_.empty() || log_weights_.size() != components_.size())
    throw InputError("a mixture needs one weight per component");
  double total = 0;
  for (double& weight : log_weights_) {
    if (!(weight > 0)) throw InputError("the weights of a mixture must be positive");
    total += weight;
    weight = std::log(weight);
  }
  if (std::abs(total - 1) > 1e-12) throw InputError("the weights of a mixture must add up to 1");
  for (const GaussianTarget& component : components_)
    if (component.dimension() != dimension())
      throw InputError("the components of a mixture must have the same dimension");
}

double MixtureTarget::at(std::span<const double> z, std::span<double> gradient) const {
  // The running sum over components is kept relative to the largest term so far: log-sum-exp in one pass.
  thread_local std::vector<double> of_component;
  of_component.resize(gradient.size());
  std::fill(gradient.begin(), gradient.end(), 0.0);
  double top = -infinity;
  double sum = 0;
  for (std::size_t k = 0; k < components_.size(); ++k) {
    const double term = log_weights_[k] + components_[k].at(z, of_component);
    const double rise = std::max(top, term);
    if (rise == -infinity) continue;
    const double keep = std::exp(top - rise);
    const double share = std::exp(term - rise);
    sum = sum * keep + share;
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = gradient[i] * keep + of_component[i] * share;
    top = rise;
  }
  for (double& g : gradient) g /= sum;
  return top + std::log(sum);
}

void MixtureTarget::compute(MatrixView<const double> z, Want want, std::span<double> value,
                            MatrixView<double> gradient) const {
  each_column(z, want, value, gradient, [this](auto point, auto out) { return at(point, out); });
}

BananaTarget::BananaTarget() : straight_(unit_gaussian({0, 0}, 0.9)) {}

void BananaTarget::compute(MatrixView<const double> z, Want want, std::span<double> value,
                           MatrixView<double> gradient) const {
  each_column(z, want, value, gradient, [this](auto point, auto out) {
    const std::array<double, 2> bent = {point[0], point[1] + square(point[0]) + 1};
    const double result = straight_.at(bent, out);  // the map has unit Jacobian
    if (!out.empty()) out[0] += 2 * point[0] * out[1];
    return result;
  });
}

std::unique_ptr<Target> make_toy(Toy toy) {
  switch (toy) {
    case Toy::gaussian:
      return std::make_unique<GaussianTarget>(unit_gaussian({0, 0}, 0.95));
    case Toy::mixture:
      return std::make_unique<MixtureTarget>(
          std::vector<double>{0.3, 0.7},
          std::vector<GaussianTarget>{unit_gaussian({0.8, 0.8}, 0.8), unit_gaussian({-2, -2}, -0.6)});
    case Toy::banana:
      return std::make_unique<BananaTarget>();
  }
  throw Error("unknown toy");
}

}  // namespace hone
