#include "hone/optim/lbfgs.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/symmetric_eigen.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

struct Point {
  explicit Point(std::size_t size) : z(size), gradient(size) {}
  void evaluate(const Target& target) {
    const int d = static_cast<int>(z.size());
    target.evaluate({z.data(), d, 1}, Want::both, {&value, 1}, {gradient.data(), d, 1});
  }
  std::vector<double> z, gradient;
  double value = -infinity;
};

// Finds a step length that gains enough (Armijo) and reduces the directional derivative (weak Wolfe), by doubling and
// bisection. −∞ counts as too far. Returns whether `next` is better than `here`.
bool line_search(const Target& target, const Point& here, std::span<const double> direction, double step, Point& next) {
  const double derivative = dot(here.gradient, direction);
  double low = 0, high = infinity;
  Point best(here.z.size());
  for (int trial = 0; trial < 40; ++trial) {
    next.z = here.z;
    add_scaled(step, direction, next.z);
    next.evaluate(target);
    const bool enough = next.value >= here.value + 1e-4 * step * derivative;
    if (enough && next.value > best.value) best = next;
    if (!enough)
      high = step;
    else if (dot(next.gradient, direction) > 0.9 * derivative)
      low = step;
    else
      return true;
    step = high < infinity ? 0.5 * (low + high) : 2 * step;
    if (high - low < 1e-14 * high) break;
  }
  next = best;
  return best.value > here.value;
}

}  // namespace

InverseHessian::InverseHessian(int dimension, int history) : history_(history), alpha_(dimension, 1.0) {}

// Every pair updates the diagonal (the diagonal BFGS update of the inverse, as in Gilbert and Lemaréchal), so that the
// scales of all coordinates are known before there are pairs for all of them.
void InverseHessian::update_diagonal(std::span<const double> s, std::span<const double> y) {
  double a = 0, c = 0;
  const double b = dot(s, y);
  for (std::size_t i = 0; i < s.size(); ++i) {
    a += square(y[i]) * alpha_[i];
    c += square(s[i]) / alpha_[i];
  }
  for (std::size_t i = 0; i < s.size(); ++i) {
    const double inverse = a / (b * alpha_[i]) + square(y[i]) / b - a * square(s[i]) / (b * c * square(alpha_[i]));
    if (inverse > 0 && std::isfinite(inverse)) alpha_[i] = 1 / inverse;
  }
}

bool InverseHessian::add(std::span<const double> s, std::span<const double> y) {
  const double curvature = dot(s, y);
  if (!(curvature > 1e-12 * std::sqrt(dot(s, s) * dot(y, y))) || !std::isfinite(curvature)) return false;
  if (s_.empty()) std::fill(alpha_.begin(), alpha_.end(), curvature / dot(y, y));
  update_diagonal(s, y);
  if (static_cast<int>(s_.size()) == history_) {
    s_.erase(s_.begin());
    y_.erase(y_.begin());
    curvature_.erase(curvature_.begin());
  }
  s_.emplace_back(s.begin(), s.end());
  y_.emplace_back(y.begin(), y.end());
  curvature_.push_back(curvature);
  return true;
}

void InverseHessian::multiply(std::span<const double> x, std::span<double> hx) const {
  std::vector<double> coefficient(s_.size());
  copy(x, hx);
  for (std::size_t k = s_.size(); k-- > 0;) {
    coefficient[k] = dot(s_[k], hx) / curvature_[k];
    add_scaled(-coefficient[k], y_[k], hx);
  }
  for (std::size_t i = 0; i < alpha_.size(); ++i) hx[i] *= alpha_[i];
  for (std::size_t k = 0; k < s_.size(); ++k) add_scaled(coefficient[k] - dot(y_[k], hx) / curvature_[k], s_[k], hx);
}

InverseHessian::Factors InverseHessian::factors() const {
  const int d = static_cast<int>(alpha_.size());
  Factors result;
  for (const double alpha : alpha_) result.a.push_back(std::sqrt(alpha));
  // An orthonormal basis of span{A⁻¹ s, A y}; outside it A⁻¹ H A⁻¹ is the identity.
  std::vector<std::vector<double>> basis;
  const auto extend = [&](std::vector<double> v) {
    if (static_cast<int>(basis.size()) == d) return;
    const double before = std::sqrt(dot(v, v));
    for (int pass = 0; pass < 2; ++pass)
      for (const auto& b : basis) add_scaled(-dot(b, v), b, v);
    const double norm = std::sqrt(dot(v, v));
    if (!(norm > 1e-8 * before)) return;
    for (double& x : v) x /= norm;
    basis.push_back(std::move(v));
  };
  for (std::size_t k = 0; k < s_.size(); ++k) {
    std::vector<double> left = s_[k], right = y_[k];
    for (int i = 0; i < d; ++i) {
      left[i] /= result.a[i];
      right[i] *= result.a[i];
    }
    extend(std::move(left));
    extend(std::move(right));
  }
  const int rank = static_cast<int>(basis.size());
  Matrix<double> small(rank, rank);
  std::vector<double> x(d), hx(d);
  for (int k = 0; k < rank; ++k) {
    for (int i = 0; i < d; ++i) x[i] = basis[k][i] / result.a[i];
    multiply(x, hx);
    for (int i = 0; i < d; ++i) hx[i] /= result.a[i];
    for (int l = 0; l < rank; ++l) small(l, k) = dot(basis[l], hx);
  }
  for (int k = 0; k < rank; ++k)
    for (int l = 0; l < k; ++l) small(l, k) = small(k, l) = 0.5 * (small(l, k) + small(k, l));
  const SymmetricEigen eigen = symmetric_eigen(std::move(small));
  result.u = Matrix<double>(d, rank);
  for (int k = 0; k < rank; ++k) {
    for (int l = 0; l < rank; ++l) add_scaled(eigen.vector(l, k), basis[l], result.u.column(k));
    result.r.push_back(std::sqrt(std::max(eigen.value[k], 1e-12)));
  }
  return result;
}

// A pair turns H into (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ with ρ = 1 / sᵀy. With B = H⁻¹, β² = ρ / sᵀBs and
// v = β B s − ρ y that is (I + s vᵀ) H (I + v sᵀ), since yᵀs = 1/ρ ends the mixed terms; its determinant is
// det H · (1 + vᵀs)², and 1 + vᵀs = β sᵀBs > 0.
InverseHessian::Root::Root(const InverseHessian& h) {
  const int d = static_cast<int>(h.alpha_.size()), pairs = static_cast<int>(h.s_.size());
  for (const double alpha : h.alpha_) {
    a_.push_back(std::sqrt(alpha));
    log_det_ += std::log(a_.back());
  }
  s_ = v_ = Matrix<double>(d, pairs);
  std::vector<double> x(d), determinant(pairs);
  for (int k = 0; k < pairs; ++k) {
    copy(h.s_[k], s_.column(k));
    copy(h.s_[k], x);
    for (int j = k; j-- > 0;) add_scaled(-dot(v_.column(j), x) / determinant[j], s_.column(j), x);
    double curvature = 0;  // sᵀBs
    for (int i = 0; i < d; ++i) {
      curvature += square(x[i] / a_[i]);
      x[i] /= square(a_[i]);
    }
    for (int j = 0; j < k; ++j) add_scaled(-dot(s_.column(j), x) / determinant[j], v_.column(j), x);
    const double rho = 1 / h.curvature_[k], beta = std::sqrt(rho / curvature);
    for (int i = 0; i < d; ++i) v_(i, k) = beta * x[i] - rho * h.y_[k][i];
    determinant[k] = beta * curvature;
    log_det_ += std::log(determinant[k]);
  }
}

void InverseHessian::Root::multiply(std::span<double> e) const {
  for (std::size_t i = 0; i < a_.size(); ++i) e[i] *= a_[i];
  for (int k = 0; k < s_.cols(); ++k) add_scaled(dot(v_.column(k), e), s_.column(k), e);
}

SearchResult maximize(const Target& target, std::span<const double> start, const LbfgsConfig& config,
                      const std::function<bool(const SearchPoint&)>& visit) {
  const auto size = static_cast<std::size_t>(target.dimension());
  Point here(size), next(size);
  copy(start, here.z);
  here.evaluate(target);
  if (!std::isfinite(here.value)) throw InputError("a search needs a start with a finite log density");
  InverseHessian inverse(target.dimension(), config.history);
  std::vector<double> direction(size), s(size), y(size);
  SearchResult result;
  bool first = true, fresh = true;
  int small_gains = 0;
  while (result.iterations < config.iterations && !result.converged) {
    inverse.multiply(here.gradient, direction);
    if (!(dot(direction, here.gradient) > 0)) break;  // a stationary point, or rounding
    const double length = first ? std::min(1.0, 1 / std::sqrt(dot(here.gradient, here.gradient))) : 1;
    if (!line_search(target, here, direction, length, next)) {
      if (fresh) break;  // no progress even with a fresh estimate
      inverse = InverseHessian(target.dimension(), config.history);
      first = fresh = true;
      continue;
    }
    for (std::size_t i = 0; i < size; ++i) {
      s[i] = next.z[i] - here.z[i];
      y[i] = here.gradient[i] - next.gradient[i];
    }
    fresh = !inverse.add(s, y);
    first = first && fresh;
    small_gains = next.value - here.value < config.tolerance * (1 + std::abs(next.value)) ? small_gains + 1 : 0;
    result.converged = small_gains >= 2;
    std::swap(here, next);
    ++result.iterations;
    if (visit && !visit({.z = here.z, .value = here.value, .gradient = here.gradient, .inverse_hessian = inverse}))
      break;
  }
  result.z = std::move(here.z);
  result.gradient = std::move(here.gradient);
  result.value = here.value;
  // A search that makes no progress from a fresh estimate is at a maximum, to rounding.
  if (result.iterations < config.iterations && !result.converged && fresh) result.converged = true;
  return result;
}

}  // namespace hone
