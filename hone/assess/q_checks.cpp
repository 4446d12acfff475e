#include "hone/assess/q_checks.hpp"

#include <algorithm>
#include <cmath>

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
void find_directions(const RefinedDraws& r, MatrixView<const double> q_draws, const Whitening& whitening,
                     const std::vector<Moments>& refined, double chance, QChecks& checks) {
  const int d = r.z0.rows();
  Matrix<double> ratio = covariance_of(r.states.z);
  std::vector<double> root;
  try {
    root = cholesky(covariance_of(q_draws));
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

  // Draws from q cost no gradients, so take many: q's own moments then have little noise.
  const PhiloxSource random(config.seed);
  const Matrix<double> q_draws = independent_draws(family, std::clamp(4'000'000 / d, 1000, 20'000), random);
  const std::vector<Moments> q = moments_over_z(q_draws, whitening), refined = moments_over_z(r.states.z, whitening);
  for (int k = 0; k < d; ++k) {
    checks.shift.push_back((q[k].mean() - refined[k].mean()) / refined[k].sd());
    checks.sd_ratio.push_back(q[k].sd() / refined[k].sd());
  }
  const double of_q = config.given > 0 ? 1.0 / config.given : 0;
  const double chance = std::sqrt(d * (1 / r.checks.effective + of_q));
  if (d <= most_direction_dimensions) find_directions(r, q_draws, whitening, refined, chance, checks);

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
