#include "hone/target/transport_map.hpp"

#include <cmath>
#include <utility>

#include "hone/base/planted.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

using Term = TransportMap::Term;

double sum(std::span<const Term> terms, std::span<const double> e) {
  double sum = 0;
  for (const Term& term : terms) sum += term.factor * term.feature(e[term.from]);
  return sum;
}

// gradient += by · ∂ sum(terms) / ∂e
void add_slopes(std::span<const Term> terms, std::span<const double> e, double by, std::span<double> gradient) {
  for (const Term& term : terms) gradient[term.from] += by * term.factor * term.slope(e[term.from]);
}

}  // namespace

double TransportMap::Term::level(double x) const {
  if (x > high) return high + width * std::tanh((x - high) / width);
  if (x < low) return low + width * std::tanh((x - low) / width);
  return x;
}

double TransportMap::Term::feature(double x) const {
  switch (shape) {
    case Shape::linear:
      return x;
    case Shape::level:
      return level(x);
    case Shape::square:
      return square(level(x));
    case Shape::hinge:
      return -bend * softplus((knot - level(x)) / bend);
  }
  return 0;
}

double TransportMap::Term::slope(double x) const {
  if (shape == Shape::linear) return 1;
  const double beyond = x > high ? x - high : x < low ? x - low : 0;
  const double of_level = beyond == 0 ? 1 : 1 - square(std::tanh(beyond / width));
  if (shape == Shape::square) return 2 * level(x) * of_level;
  if (shape == Shape::hinge) return sigmoid((knot - level(x)) / bend) * of_level;
  return of_level;
}

void TransportMap::rotate(Way way, std::span<double> x) const {
  if (!rotation_) return;
  thread_local std::vector<double> turned;
  turned.assign(x.size(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::span<const double> column = rotation_->column(static_cast<int>(i));
    if (way == Way::there)
      add_scaled(x[i], column, turned);
    else
      turned[i] = dot(column, x);
  }
  copy(turned, x);
}

double TransportMap::to_e(std::span<const double> u, std::span<double> e, std::span<double> trace) const {
  const std::span<double> x = trace.first(u.size()), scale = trace.subspan(u.size());
  copy(u, x);
  double log_det = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    const double s = row.log_scale + sum(row.scale, x);
    scale[r] = std::exp(s);
    x[row.coordinate] = row.shift + sum(row.location, x) + scale[r] * u[row.coordinate];
    log_det += s;
  }
  copy(x, e);
  rotate(Way::back, e);
  return planted(Fault::missing_log_det) ? 0 : log_det;
}

double TransportMap::to_u(std::span<const double> e, std::span<double> u, std::span<double> trace) const {
  const std::span<double> x = trace.first(e.size()), scale = trace.subspan(e.size());
  copy(e, x);
  rotate(Way::there, x);
  copy(x, u);
  double log_det = 0;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    const double s = row.log_scale + sum(row.scale, x);
    scale[r] = std::exp(s);
    u[row.coordinate] = (x[row.coordinate] - row.shift - sum(row.location, x)) / scale[r];
    log_det += s;
  }
  return planted(Fault::missing_log_det) ? 0 : log_det;
}

// From the last row to the first: then gradient[j] is the derivative by x_j with all that depends on it.
void TransportMap::pull_back(std::span<const double> u, std::span<const double> trace,
                             std::span<double> gradient) const {
  const std::span<const double> x = trace.first(u.size()), scale = trace.subspan(u.size());
  rotate(Way::there, gradient);
  for (std::size_t r = rows_.size(); r-- > 0;) {
    const int j = rows_[r].coordinate;
    const double by_x = gradient[j];
    gradient[j] = by_x * scale[r];
    add_slopes(rows_[r].location, x, by_x, gradient);
    add_slopes(rows_[r].scale, x, 1 + gradient[j] * u[j], gradient);
  }
}

void TransportMap::push_forward(std::span<const double> u, std::span<const double> trace,
                                std::span<double> gradient) const {
  const std::span<const double> x = trace.first(u.size()), scale = trace.subspan(u.size());
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const int j = rows_[r].coordinate;
    const double by_u = gradient[j], by_x = by_u / scale[r];
    add_slopes(rows_[r].location, x, -by_x, gradient);
    add_slopes(rows_[r].scale, x, -(1 + by_u * u[j]), gradient);
    gradient[j] = by_x;
  }
  rotate(Way::back, gradient);
}

void TransportedTarget::compute(MatrixView<const double> u, Want want, std::span<double> value,
                                MatrixView<double> gradient) const {
  // The memory is moved out while in use: the target may itself be one of these.
  thread_local std::vector<double> spare;
  std::vector<double> storage = std::exchange(spare, {});
  const int d = u.rows(), n = u.cols();
  storage.resize(static_cast<std::size_t>(d + map_.trace_size() + 1) * static_cast<std::size_t>(n));
  const MatrixView<double> e(storage.data(), d, n), trace(e.flat().data() + e.flat().size(), map_.trace_size(), n);
  const std::span<double> log_det(trace.flat().data() + trace.flat().size(), static_cast<std::size_t>(n));
  for (int c = 0; c < n; ++c) log_det[c] = map_.to_e(u.column(c), e.column(c), trace.column(c));
  target_.evaluate(e, want, value, gradient);
  if (wants_value(want))
    for (int c = 0; c < n; ++c) value[c] += log_det[c];
  if (wants_gradient(want))
    for (int c = 0; c < n; ++c) map_.pull_back(u.column(c), trace.column(c), gradient.column(c));
  spare = std::move(storage);
}

}  // namespace hone
