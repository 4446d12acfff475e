#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hone/assess/annealing.hpp"
#include "hone/base/statistics.hpp"

namespace hone {

/// The log-likelihood of a datum by importance sampling, eq. approx_log_lik, with the paper's three Gaussian proposals:
///   1  q's mean, 1.2 times q's standard deviations
///   2  the mean of an HMC chain (600 steps from q's mean, of which the last 300 count), 1.2 times q's deviations
///   3  the chain's mean, 1.2 times the chain's standard deviations
inline constexpr int proposal_count = 3;

/// Both engines compute it in the same way.
inline constexpr int evaluation_group = 50;        ///< data whose chains share a step size
inline constexpr int evaluation_block = 512;       ///< draws of a proposal that share a stream of random numbers
inline constexpr double smallest_chain_sd = 1e-4;  ///< a chain's standard deviation is raised to at least this

/// How test data are evaluated by importance sampling.
struct EvaluationConfig {
  int samples = 20000;                                              ///< S, the draws of each proposal
  int burn_in = 300;                                                ///< steps that adapt the step size
  int kept = 300;                                                   ///< steps that count
  double widening = 1.2;                                            ///< factor on all standard deviations
  std::array<bool, proposal_count> proposals = {true, true, true};  ///< which proposals to use
  std::optional<int> points;  ///< evaluate only this many data, from the first on (same results); none: all
  int first = 0;              ///< if these are a part of other data: how many come before, in whole groups
};

/// Throws InputError if the settings are impossible.
void check(const EvaluationConfig& config);

/// The log-likelihood estimates of one datum.
struct PointEvaluation {
  std::array<ImportanceEstimate, proposal_count> proposal;  ///< those requested
  /// The highest of them, the paper's measure. It is no lower bound, since it is chosen after seeing the estimates.
  double best = 0;
  double pilot =
      0;  ///< the proposal that is best on the first tenth of the draws, estimated from the other nine tenths
  ImportanceEstimate mixture;   ///< all draws weighted against the equal mixture of the proposals: a lower bound
  std::optional<double> exact;  ///< gaussian-mf
};

/// Combines a point's draws into its estimates. draws[j] belongs to proposal j: log p(x, z), and log r_i(z) for each
/// proposal i.
struct ProposalDraws {
  std::vector<double> log_joint;                                ///< log p(x, z) per draw
  std::array<std::vector<double>, proposal_count> log_density;  ///< log r_i(z) per draw, for every proposal i
};
/// Combines the draws of all proposals into a datum's estimates.
PointEvaluation combine(const std::array<ProposalDraws, proposal_count>& draws,
                        const std::array<bool, proposal_count>& used);

/// Means over data with their standard errors (NaN for a single datum). If no draw of a proposal has any weight at some
/// datum, its estimate there is −∞, the mean is −∞ and the standard error NaN.
struct EvaluationSummary {
  std::array<Estimate, proposal_count> proposal;           ///< mean estimate per proposal
  std::array<double, proposal_count> effective_samples{};  ///< mean over data
  Estimate best;                                           ///< mean of the highest estimate per datum
  Estimate pilot;                        ///< mean of the estimates by the proposal chosen on a pilot sample
  Estimate mixture;                      ///< mean of the estimates by the mixture of all proposals, a lower bound
  double mixture_effective_samples = 0;  ///< mean effective sample size of the mixture
  std::optional<Estimate> exact;         ///< mean exact log-likelihood, if it is known
  int points = 0;                        ///< number of data
  int points_without_weight = 0;         ///< where no proposal has any weight: all estimates are −∞ there
};
/// Means over data with their standard errors.
EvaluationSummary summarize(std::span<const PointEvaluation> points);

/// The log-likelihood of data by annealed importance sampling (hone/assess/annealing.hpp). Groups of 50 data share step
/// sizes. Groups are always cut from all data, so a point's results do not depend on how many are requested.
struct AnnealingTask {
  AnnealingConfig config = {};                    ///< steps and chains
  std::optional<int> points = {};                 ///< as in EvaluationConfig
  MatrixView<const double> posterior_draws = {};  ///< (D, data): the start of backward chains; empty: forward
  int first = 0;                                  ///< as in EvaluationConfig

  /// Whether chains run from the posterior to the prior.
  bool backward() const { return posterior_draws.cols() > 0; }
  /// The direction of the chains.
  AnnealingPass pass() const { return backward() ? AnnealingPass::backward : AnnealingPass::forward; }
};

/// Throws InputError if the settings are impossible for this number of data.
void check(const AnnealingTask& task, int data);

}  // namespace hone
