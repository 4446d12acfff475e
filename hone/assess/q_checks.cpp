#include "hone/assess/q_checks.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hone/assess/exchange.hpp"
#include "hone/base/clones.hpp"
#include "hone/base/error.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/symmetric_eigen.hpp"
#include "hone/tensor/triangular.hpp"

namespace hone {
namespace {

// Marginal moments in z of points given in e.
std::vector<Moments> moments_over_z(MatrixView<const double> e, const Whitening& whitening) {
  constexpr int at_once = 64;
  std::vector<Moments> result(e.rows());
  Matrix<double> z(e.rows(), at_once);
  for (int begin = 0; begin < e.cols(); begin += at_once) {
    const int count = std::min(at_once, e.cols() - begin);
    whitening.to_z(e.columns(begin, begin + count), z.view().columns(0, count));
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < z.rows(); ++k) result[k].add(z(k, i));
  }
  return result;
}

// The lower half of sum (D, D) += Σ x xᵀ over four columns of x
HONE_CLONES void add_outer(const double* x, std::size_t d, double* sum) {
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = j; k < d; ++k)
      sum[j * d + k] += x[k] * x[j] + x[d + k] * x[d + j] + x[2 * d + k] * x[2 * d + j] + x[3 * d + k] * x[3 * d + j];
}

Matrix<double> covariance_of(MatrixView<const double> e) {
  const int d = e.rows();
  std::vector<double> mean(d);
  for (int i = 0; i < e.cols(); ++i)
    for (int k = 0; k < d; ++k) mean[k] += e(k, i) / e.cols();
  Matrix<double> result(d, d), x(d, 4);
  for (int i = 0; i < e.cols(); i += 4) {
    for (int c = 0; c < 4; ++c)  // zeros beyond the last column
      for (int k = 0; k < d; ++k) x(k, c) = i + c < e.cols() ? e(k, i + c) - mean[k] : 0;
    add_outer(x.view().data(), static_cast<std::size_t>(d), result.view().data());
  }
  for (int j = 0; j < d; ++j)
    for (int k = j; k < d; ++k) result(j, k) = result(k, j) = result(k, j) / (e.cols() - 1);
  return result;
}

// What q is: means and sds in z, its covariance in e (D, D).
struct QMoments {
  std::vector<double> mean, sd;
  Matrix<double> covariance;  // empty beyond most_direction_dimensions
};

// From many draws, so that the moments have little noise: they cost no gradients.
QMoments drawn_moments(const Family& family, const Whitening& whitening, const RandomSource& random) {
  const int d = family.dimension();
  const Matrix<double> draws = independent_draws(family, std::clamp(4'000'000 / d, 1000, 20'000), random);
  QMoments result;
  for (const Moments& of_draws : moments_over_z(draws, whitening)) {
    result.mean.push_back(of_draws.mean());
    result.sd.push_back(of_draws.sd());
  }
  if (d <= most_direction_dimensions) result.covariance = covariance_of(draws);
  return result;
}

// Variances in z = m + L e of a Gaussian over e.
std::vector<double> variances_over_z(const Normal& normal, const Whitening& whitening) {
  if (normal.covariance == Covariance::diagonal) return whitening.then_diagonal(normal.mean, normal.scale).variances();
  constexpr int at_once = 64;
  const int d = whitening.dimension();
  const std::vector<double> zero(d);
  std::vector<double> origin(d), result(d);
  whitening.to_z(zero, origin);
  for (int begin = 0; begin < d; begin += at_once) {
    Matrix<double> column(d, std::min(at_once, d - begin)), z(d, column.cols());
    for (int j = 0; j < column.cols(); ++j) {
      for (int i = begin + j; i < d; ++i) column(i, j) = normal.scale[packed(i, begin + j)];
    }
    whitening.to_z(column, z);
    for (int j = 0; j < z.cols(); ++j)
      for (int i = 0; i < d; ++i) result[i] += square(z(i, j) - origin[i]);
  }
  return result;
}

// The lower half of sum (D, D) += weight (C + x xᵀ), C the covariance of a Gaussian and x its mean's distance from
// `mean`
void add_covariance(double weight, const Normal& normal, std::span<const double> mean, Matrix<double>& sum) {
  const int d = sum.rows();
  const auto add = [&](std::span<const double> x, int first) {
    for (int j = first; j < d; ++j)
      for (int i = j; i < d; ++i) sum(i, j) += weight * x[i] * x[j];
  };
  std::vector<double> x(d);
  for (int i = 0; i < d; ++i) x[i] = normal.mean[i] - mean[i];
  add(x, 0);
  if (normal.covariance == Covariance::diagonal) {
    for (int i = 0; i < d; ++i) sum(i, i) += weight * square(normal.scale[i]);
    return;
  }
  for (int k = 0; k < d; ++k) {
    for (int i = k; i < d; ++i) x[i] = normal.scale[packed(i, k)];
    add(x, k);
  }
}

// Exactly, where q is a Gaussian or a mixture of Gaussians.
std::optional<QMoments> exact_moments(const Family& family, const Whitening& whitening) {
  const int d = family.dimension(), count = family.components();
  std::vector<double> weight(count), mean(d), z(d), ignored(d);
  std::vector<Normal> normals;
  for (int k = 0; k < count; ++k) {
    const std::optional<Normal> normal = family.component(k);
    if (!normal) return std::nullopt;
    normals.push_back(*normal);
  }
  family.log_weights(weight);
  for (double& w : weight) w = std::exp(w);
  family.moments(mean, ignored);
  QMoments result{std::vector<double>(d), std::vector<double>(d), {}};
  whitening.to_z(mean, result.mean);
  for (int k = 0; k < count; ++k) {
    const std::vector<double> variance = variances_over_z(normals[k], whitening);
    whitening.to_z(normals[k].mean, z);
    for (int i = 0; i < d; ++i) result.sd[i] += weight[k] * (variance[i] + square(z[i] - result.mean[i]));
  }
  for (double& x : result.sd) x = std::sqrt(x);
  if (d > most_direction_dimensions) return result;
  result.covariance = Matrix<double>(d, d);
  for (int k = 0; k < count; ++k) add_covariance(weight[k], normals[k], mean, result.covariance);
  for (int j = 0; j < d; ++j)
    for (int i = 0; i < j; ++i) result.covariance(i, j) = result.covariance(j, i);
  return result;
}

// Differences between z_t and z0 of the coordinates, their squares about q's mean, and log q; at most `most` pairs.
Matrix<double> differences(const RefinedDraws& r, const std::vector<double>& centre, int most) {
  const int d = r.z0.rows(), n = std::min(r.zt.cols(), most);
  Matrix<double> result(2 * d + 1, n);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < d; ++k) {
      result(k, i) = r.zt(k, i) - r.z0(k, i);
      result(d + k, i) = square(r.zt(k, i) - centre[k]) - square(r.z0(k, i) - centre[k]);
    }
    result(2 * d, i) = r.log_qt[i] - r.log_q0[i];
  }
  return result;
}

// Generalized eigenvectors of the refined covariance against q's. Under equal covariances the extremes of n draws in D
// dimensions lie at (1 ± √(D/n))², against those of m other draws at about (1 ± √(D/n + D/m))²; this effect of chance,
// the √ given as `chance`, is removed.
void find_directions(const RefinedDraws& r, const Matrix<double>& of_q, const Whitening& whitening,
                     const std::vector<Moments>& refined, double chance, QChecks& checks) {
  const int d = r.z0.rows();
  Matrix<double> ratio = covariance_of(r.states.z);
  std::vector<double> root;
  try {
    root = cholesky(of_q);
  } catch (const InputError&) {
    return;  // there are fewer draws than dimensions
  }
  for (int pass = 0; pass < 2; ++pass) {  // R⁻¹ C R⁻ᵀ
    for (int j = 0; j < d; ++j) solve_lower(root, ratio.column(j), ratio.column(j));
    for (int j = 0; j < d; ++j)
      for (int k = 0; k < j; ++k) std::swap(ratio(k, j), ratio(j, k));
  }
  const SymmetricEigen eigen = symmetric_eigen(std::move(ratio));
  const std::vector<double> zero(d);
  std::vector<double> origin(d);
  whitening.to_z(zero, origin);
  const auto direction = [&](int k, double edge) {
    std::vector<double> v(eigen.vector.column(k).begin(), eigen.vector.column(k).end()), z(d);
    multiply_lower(root, v, v);  // a direction of e in which refined and q's covariance have this ratio
    whitening.to_z(v, z);
    double norm = 0;
    for (int i = 0; i < d; ++i) {
      z[i] = (z[i] - origin[i]) / refined[i].sd();
      norm += square(z[i]);
    }
    for (double& x : z) x /= std::sqrt(norm);
    return Direction{std::move(z), edge / std::sqrt(std::max(eigen.value[k], 1e-300))};
  };
  const int wanted = std::min(d, 2);
  for (int k = 0; k < wanted; ++k) {
    checks.narrowest.push_back(direction(k, 1 + chance));
    checks.widest.push_back(direction(d - 1 - k, std::max(1e-3, 1 - chance)));
  }
}

}  // namespace

QChecks check_q(const RefinedDraws& r, const Family& family, const Whitening& whitening, const Psis& weights,
                const QCheckConfig& config) {
  const int d = r.states.z.rows();
  QChecks checks;
  checks.k_hat = weights.k_hat;
  checks.effective_draws = weights.effective_draws;

  const PhiloxSource random(config.seed);
  std::optional<QMoments> q = exact_moments(family, whitening);
  if (!q) q = drawn_moments(family, whitening, random);
  const std::vector<Moments> refined = moments_over_z(r.states.z, whitening);
  for (int k = 0; k < d; ++k) {
    checks.shift.push_back((q->mean[k] - refined[k].mean()) / refined[k].sd());
    checks.sd_ratio.push_back(q->sd[k] / refined[k].sd());
  }
  const double of_q = config.given > 0 ? 1.0 / config.given : 0;
  const double chance = std::sqrt(d * (1 / r.checks.effective + of_q));
  if (d <= most_direction_dimensions) find_directions(r, q->covariance, whitening, refined, chance, checks);

  std::vector<double> mean(d), sd(d);
  family.moments(mean, sd);
  checks.p_value_flips = 999;
  Team team(config.threads);
  checks.p_value = exchangeability_p_value(differences(r, mean, 1000), checks.p_value_flips, random, team);

  if (family.components() > 1) {
    ModeMasses masses = mode_masses(weights, r.component, family.components());
    checks.mode_mass = std::move(masses.mass);
    checks.q_weight = std::move(masses.weight);
  }
  if (r.at.size() >= 2) {
    const Estimate last = r.at.back().vcd, before = r.at[r.at.size() - 2].vcd;
    checks.tail_growth = (last.mean - before.mean) / std::max(last.se, 1e-300);
  }
  return checks;
}

}  // namespace hone
