#pragma once

#include <span>
#include <vector>

#include "hone/base/statistics.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

/// States of several chains at the same steps, chain after chain: state s of chain c is column c · per_chain + s.
struct ChainStates {
  /// No states.
  ChainStates() = default;
  /// Room for `states` states of each of `count` chains.
  ChainStates(int dimension, int count, int states)
      : z(dimension, count * states), log_p(static_cast<std::size_t>(count * states)), chains(count) {}

  Matrix<double> z;           ///< (D, n)
  std::vector<double> log_p;  ///< log p at z (n)
  Matrix<double> gradient;    ///< of log p (D, n), where it was asked for
  int chains = 0;             ///< how many chains there are

  /// n
  int count() const { return z.cols(); }
  /// States of each chain.
  int per_chain() const { return chains > 0 ? z.cols() / chains : 0; }
};

/// The means of the chains, each over its own values; `values` has chain after chain.
std::vector<double> means_of_chains(std::span<const double> values, int chains);

/// The mean of the values, with an error from the spread of the chains' own means. Chains must be independent of each
/// other and at least two; how the values depend on each other within a chain does not matter.
Estimate mean_over_chains(std::span<const double> values, int chains);

/// The number of independent draws whose mean would have the same error: variance of the values / error². No more than
/// n log₁₀ n (antithetic chains), and n where the values do not vary.
double effective_draws(std::span<const double> values, int chains);

/// The p-quantile, between the two nearest values. Puts smaller values before larger ones.
double quantile_of(std::span<double> values, double p);

/// The effective number of draws for a quantile: of the indicator of values below `threshold`.
double effective_draws_below(std::span<const double> values, int chains, double threshold);

}  // namespace hone
