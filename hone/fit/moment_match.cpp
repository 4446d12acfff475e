#include "hone/fit/moment_match.hpp"

#include <algorithm>
#include <cmath>

#include "hone/assess/lanes.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/fit/local_normal.hpp"
#include "hone/target/batches.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/triangular.hpp"

namespace hone {
namespace {

// How much of its control variate each coordinate takes: the slope of e_i against g_i, between 0 and 1.
std::vector<double> shares(const ChainStates& states, const std::vector<double>& mean) {
  std::vector<double> result(mean.size()), both(mean.size()), squares(mean.size());
  for (int i = 0; i < states.count(); ++i)
    for (int k = 0; k < states.z.rows(); ++k) {
      both[k] += (states.z(k, i) - mean[k]) * states.gradient(k, i);
      squares[k] += square(states.gradient(k, i));
    }
  for (std::size_t k = 0; k < result.size(); ++k)
    result[k] = squares[k] > 0 ? std::clamp(-both[k] / squares[k], 0.0, 1.0) : 0;
  return result;
}

}  // namespace

StateMoments moments_of_states(const ChainStates& states, Second which) {
  const int d = states.z.rows(), n = states.count();
  StateMoments result{std::vector<double>(d), {}};
  std::vector<double> mean(d), slope(d);
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < d; ++k) {
      mean[k] += states.z(k, i) / n;
      slope[k] += states.gradient(k, i) / n;
    }
  const std::vector<double> share = shares(states, mean);
  for (int k = 0; k < d; ++k) result.mean[k] = mean[k] + share[k] * slope[k];
  if (which == Second::none) return result;
  Matrix<double>& c = result.covariance = Matrix<double>(d, d);
  std::vector<double> x(d), g(d);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < d; ++k) {
      x[k] = states.z(k, i) - mean[k];
      g[k] = share[k] * states.gradient(k, i);
    }
    for (int k = 0; k < d; ++k)
      for (int j = 0; j <= k; ++j) c(k, j) += (x[k] * x[j] + 0.5 * (x[k] * g[j] + g[k] * x[j])) / n;
  }
  for (int k = 0; k < d; ++k)
    for (int j = 0; j <= k; ++j) {
      c(k, j) += (j == k ? share[k] : 0) - (result.mean[k] - mean[k]) * (result.mean[j] - mean[j]);
      c(j, k) = c(k, j);
    }
  return result;
}

namespace {

// √(Var e_k / Var g_k): of all Gaussians with independent coordinates, the one whose variances these are has the least
// symmetrised KL to a Gaussian posterior, which is its VCD after many steps. Exact where g = −e, whatever the states.
std::vector<double> best_variances(const ChainStates& states) {
  std::vector<double> result;
  for (int first = 0; first < states.z.rows(); first += lane_count) {
    const LaneMoments e = moments_of(LaneBlock(states.z, first)), g = moments_of(LaneBlock(states.gradient, first));
    for (int l = 0; l < std::min(lane_count, states.z.rows() - first); ++l) {
      const double ratio = e.of(l).variance() / g.of(l).variance();
      result.push_back(std::isfinite(ratio) && ratio > 0 ? std::sqrt(ratio) : 1);
    }
  }
  return result;
}

}  // namespace

Whitening matched(const FittedQ& q, const ChainStates& states, double effective, double part) {
  const bool correlated = q.kind == QKind::gaussian_full;
  const double least_draws = correlated ? 100 : 5;  // of the slowest coordinate; independent ones need few
  constexpr double draws_per_dimension = 5;
  const int d = states.z.rows();
  if (effective < least_draws) return q.whitening;
  const bool full = correlated && effective >= draws_per_dimension * d;
  StateMoments moments = moments_of_states(states, full ? Second::covariance : Second::none);
  for (double& x : moments.mean) x *= part;
  if (full) {
    Matrix<double>& c = moments.covariance;
    for (double& x : c.view().flat()) x *= part;
    for (int k = 0; k < d; ++k) c(k, k) += 1 - part;
    try {
      return q.whitening.then_lower(moments.mean, cholesky(c));
    } catch (const InputError&) {  // not positive definite: the variances must do
    }
  }
  std::vector<double> sd(d);
  const std::vector<double> best = best_variances(states);
  for (int k = 0; k < d; ++k) sd[k] = std::sqrt(part * best[k] + 1 - part);
  return q.whitening.then_diagonal(moments.mean, sd);
}

Estimate gain_of(const Target& target, const Whitening& own, const Whitening& candidate, const ChainStates& states,
                 std::uint64_t seed, Team& team) {
  constexpr int draws = 256;
  const int d = target.dimension();
  const auto log_normal = [](std::span<const double> e) {
    double sum = 0;
    for (const double x : e) sum -= 0.5 * square(x);
    return sum;
  };
  std::vector<double> z(d), e(d), under_p(static_cast<std::size_t>(states.count()));
  for (int i = 0; i < states.count(); ++i) {
    own.to_z(states.z.column(i), z);
    candidate.to_e(z, e);
    under_p[static_cast<std::size_t>(i)] =
        log_normal(e) - candidate.log_det() - log_normal(states.z.column(i)) + own.log_det();
  }
  Matrix<double> noise(d, draws);
  const PhiloxSource random(seed);
  for (int i = 0; i < draws; ++i)
    random.normals({Purpose::draw, assessment_iteration, static_cast<std::uint32_t>(i)}, noise.column(i));
  std::vector<double> here(draws), there(draws);
  evaluate_in_batches(WhitenedTarget(target, own), noise, Want::value, here, {}, team);
  evaluate_in_batches(WhitenedTarget(target, candidate), noise, Want::value, there, {}, team);
  Moments under_q;
  for (int i = 0; i < draws; ++i)
    if (here[i] != -infinity && there[i] != -infinity)
      under_q.add(there[i] + candidate.log_det() - here[i] - own.log_det());
  const Estimate first = mean_over_chains(under_p, states.chains), second = under_q.estimate();
  return {first.mean + second.mean, std::hypot(first.se, second.se)};
}

BestQ best_q(const Target& target, const FittedQ& q, const RefinedDraws& seen, std::uint64_t seed, Team& team) {
  std::vector<Whitening> candidates;
  for (const double part : {1.0, 0.5}) candidates.push_back(matched(q, seen.states, seen.checks.effective, part));
  if (q.kind == QKind::gaussian_curvature) {  // the curvature at the mean of the chains
    const std::vector<double> one(target.dimension(), 1.0);
    const Whitening here = q.whitening.then_diagonal(moments_of_states(seen.states, Second::none).mean, one);
    if (const auto model = quadratic_about(target, here, team))
      candidates.push_back(here.then_lower(std::vector<double>(one.size()), model->root));
  }
  BestQ best{.whitening = q.whitening};
  for (Whitening& candidate : candidates) {
    const Estimate own = gain_of(target, q.whitening, candidate, seen.states, seed, team);
    best.possible = std::max(best.possible, own.mean + 2 * own.se);
    if (!(own.mean - 2 * own.se > 0 && own.mean > best.gain)) continue;
    best.gain = own.mean;
    best.whitening = std::move(candidate);
  }
  return best;
}

}  // namespace hone
