#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hone/assess/annealing.hpp"
#include "hone/base/statistics.hpp"

namespace hone {

// The log-likelihood of a datum by importance sampling, eq. approx_log_lik, with the paper's three Gaussian proposals:
//   1  q's mean, 1.2 times q's standard deviations
//   2  the mean of an HMC chain (600 steps from q's mean, of which the last 300 count), 1.2 times q's deviations
//   3  the chain's mean, 1.2 times the chain's standard deviations
inline constexpr int proposal_count = 3;

// How it is computed, on either engine: chains of so many data share a step size; draws of a proposal come in blocks,
// of which each has its own random numbers; a chain's standard deviation below this is raised to it.
inline constexpr int evaluation_group = 50;
inline constexpr int evaluation_block = 512;
inline constexpr double smallest_chain_sd = 1e-4;

struct EvaluationConfig {
  int samples = 20000;  // S, of every proposal
  int burn_in = 300;    // steps that adapt the step size
  int kept = 300;       // steps that count
  double widening = 1.2;
  std::array<bool, proposal_count> proposals = {true, true, true};
  std::optional<int> points;  // only the first so many data, with the figures that they have among all; none: all
};

// Throws InputError where an evaluation cannot be made so.
void check(const EvaluationConfig& config);

struct PointEvaluation {
  std::array<ImportanceEstimate, proposal_count> proposal;  // of those asked for
  double best = 0;   // the highest of them, the paper's figure: no lower bound, since it is chosen after seeing
  double pilot = 0;  // the proposal that is best on the first tenth of the draws, estimated on the other nine
  ImportanceEstimate mixture;   // all draws of all proposals as draws of their equal mixture: a lower bound
  std::optional<double> exact;  // gaussian-mf
};

// Puts a point's figures together. draws[j] holds proposal j's draws: log p(x, z), and log r_i(z) of every proposal i.
struct ProposalDraws {
  std::vector<double> log_joint;
  std::array<std::vector<double>, proposal_count> log_density;
};
PointEvaluation combine(const std::array<ProposalDraws, proposal_count>& draws,
                        const std::array<bool, proposal_count>& used);

// Means over data with their standard errors (NaN where there is one datum alone). Where no draw of a proposal has
// weight at some datum, its estimate there is −∞, and so is the mean; its standard error is then NaN.
struct EvaluationSummary {
  std::array<Estimate, proposal_count> proposal;
  std::array<double, proposal_count> effective_samples{};  // mean over data
  Estimate best, pilot, mixture;
  double mixture_effective_samples = 0;
  std::optional<Estimate> exact;
  int points = 0;
  int points_without_weight = 0;  // of any proposal: all figures are −∞ there
};
EvaluationSummary summarize(std::span<const PointEvaluation> points);

// The log-likelihood of data by annealed importance sampling (hone/assess/annealing.hpp). Step sizes are those of
// groups of 50 data, always groups of all data, so that a point's figures do not depend on how many are asked for.
struct AnnealingTask {
  AnnealingConfig config = {};
  std::optional<int> points = {};                 // as above
  MatrixView<const double> posterior_draws = {};  // (D, data): where chains go backward from; empty: forward

  bool backward() const { return posterior_draws.cols() > 0; }
  AnnealingPass pass() const { return backward() ? AnnealingPass::backward : AnnealingPass::forward; }
};

// Throws InputError where so many data cannot be annealed so.
void check(const AnnealingTask& task, int data);

}  // namespace hone
