#include "hone/fit/moment_match.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/triangular.hpp"

namespace hone {
namespace {

// How much of its control variate each coordinate takes: the slope of e_i against g_i, between 0 and 1.
std::vector<double> shares(const ChainStates& states, const std::vector<double>& mean) {
  std::vector<double> result(mean.size());
  for (int k = 0; k < states.z.rows(); ++k) {
    double both = 0, squares = 0;
    for (int i = 0; i < states.count(); ++i) {
      both += (states.z(k, i) - mean[k]) * states.gradient(k, i);
      squares += square(states.gradient(k, i));
    }
    result[k] = squares > 0 ? std::clamp(-both / squares, 0.0, 1.0) : 0;
  }
  return result;
}

}  // namespace

StateMoments moments_of_states(const ChainStates& states, Second which) {
  const int d = states.z.rows(), n = states.count();
  StateMoments result{std::vector<double>(d), Matrix<double>(d, which == Second::covariance ? d : 1)};
  std::vector<double> mean(d), slope(d);
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < d; ++k) {
      mean[k] += states.z(k, i) / n;
      slope[k] += states.gradient(k, i) / n;
    }
  const std::vector<double> share = shares(states, mean);
  Matrix<double>& c = result.covariance;
  std::vector<double> x(d), g(d);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < d; ++k) {
      x[k] = states.z(k, i) - mean[k];
      g[k] = share[k] * states.gradient(k, i);
    }
    for (int k = 0; k < d; ++k)
      for (int j = c.cols() > 1 ? 0 : k; j <= k; ++j)
        c(k, c.cols() > 1 ? j : 0) += (x[k] * x[j] + 0.5 * (x[k] * g[j] + g[k] * x[j])) / n;
  }
  for (int k = 0; k < d; ++k) result.mean[k] = mean[k] + share[k] * slope[k];
  for (int k = 0; k < d; ++k)
    for (int j = c.cols() > 1 ? 0 : k; j <= k; ++j) {
      double& own = c(k, c.cols() > 1 ? j : 0);
      own += (j == k ? share[k] : 0) - (result.mean[k] - mean[k]) * (result.mean[j] - mean[j]);
      if (c.cols() > 1) c(j, k) = own;
    }
  return result;
}

Whitening matched(const FittedQ& q, const ChainStates& states, double effective, double part) {
  constexpr double least_draws = 100, draws_per_dimension = 5;
  const int d = states.z.rows();
  if (effective < least_draws) return q.whitening;
  const bool full = q.kind == QKind::gaussian_full && effective >= draws_per_dimension * d;
  StateMoments moments = moments_of_states(states, full ? Second::covariance : Second::variances);
  Matrix<double>& c = moments.covariance;
  for (double& x : moments.mean) x *= part;
  for (double& x : c.view().flat()) x *= part;
  for (int k = 0; k < d; ++k) c(k, full ? k : 0) += 1 - part;
  if (full) {
    try {
      return q.whitening.then_lower(moments.mean, cholesky(c));
    } catch (const InputError&) {  // not positive definite: the variances must do
    }
  }
  std::vector<double> sd(d);
  for (int k = 0; k < d; ++k) sd[k] = std::sqrt(std::max(c(k, full ? k : 0), 1e-4));
  return q.whitening.then_diagonal(moments.mean, sd);
}

}  // namespace hone
