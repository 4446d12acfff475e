#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hone/assess/importance.hpp"
#include "hone/base/random.hpp"
#include "hone/base/statistics.hpp"
#include "hone/target/target.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

/// Annealed importance sampling (Neal 2001) of log p(x) = log ∫ N(z; 0, I) p(x | z) dz. A chain starts at a draw from
/// the prior and passes through the densities N(z; 0, I) p(x | z)^β_k, β_0 = 0 … β_K = 1, with one HMC step at each of
/// β_1 … β_(K−1). Its weight is w = Π p(x | z_(k−1))^(β_k − β_(k−1)), and E[w] = p(x). A pilot run with its own random
/// numbers tunes the step sizes, which are then frozen so that this stays exact (docs/math.md).
struct AnnealingConfig {
  int steps = 1500;  ///< K
  int chains = 8;    ///< per datum
  int leapfrog = 3;  ///< leapfrog steps per HMC step
};

/// Throws InputError if the configuration is impossible.
void check(const AnnealingConfig& config);

/// The three kinds of annealing runs.
enum class AnnealingPass : std::uint32_t {
  pilot,     ///< tunes the step sizes
  forward,   ///< from the prior to the posterior
  backward,  ///< from an exact draw of the posterior to the prior
};

/// The result for one datum.
struct AnnealedPoint {
  ImportanceEstimate estimate;          ///< of log p(x): a lower bound in expectation; backward, an upper bound
  double acceptance = 0;                ///< mean acceptance probability of all chains at all temperatures
  std::int64_t rejected_nonfinite = 0;  ///< proposals at which the target was not finite
};

/// Anneals the data in groups, whose chains share step sizes. The target is log p(x, z) with z ~ N(0, I), one posterior
/// per datum. It works on the calling thread and keeps nothing from one group to the next.
class Annealer {
 public:
  /// Target and random source must outlive it. Throws InputError if the configuration is impossible.
  Annealer(const Target& target, const AnnealingConfig& config, const RandomSource& random);

  /// Anneals the first `wanted` data of the group [first, first + count). All data of the group tune the step sizes.
  std::vector<AnnealedPoint> forward(std::uint32_t first, int count, int wanted);
  /// The same from exact draws of the group's posteriors, (D, count), to the prior. Such draws exist only for simulated
  /// data.
  std::vector<AnnealedPoint> backward(std::uint32_t first, MatrixView<const double> posterior_draws, int wanted);

 private:
  struct Run;
  std::vector<double> tuned(std::uint32_t first, int count);

  const Target& target_;
  AnnealingConfig config_;
  const RandomSource& random_;
  std::vector<double> schedule_;
};

/// Means over data. If the data differ by chance alone, the standard error includes the chains' own uncertainty.
struct AnnealingSummary {
  Estimate log_likelihood;              ///< with its standard error over data; −∞ if some datum has no weight
  double chain_se = 0;                  ///< standard error of the mean from the spread of weights; NaN with one chain
  double effective_chains = 0;          ///< mean effective number of chains per datum
  double acceptance = 0;                ///< mean acceptance probability
  int points = 0;                       ///< number of data
  int points_without_weight = 0;        ///< data at which no chain has weight
  std::int64_t rejected_nonfinite = 0;  ///< proposals at which the target was not finite
};

/// Summarises the results of some data.
AnnealingSummary summarize(std::span<const AnnealedPoint> points, const AnnealingConfig& config);

}  // namespace hone
