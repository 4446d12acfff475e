#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hone/assess/importance.hpp"
#include "hone/base/clones.hpp"
#include "hone/base/random.hpp"
#include "hone/base/statistics.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/target/target.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// Annealed importance sampling (Neal 2001) of log p(x) = log ∫ N(z; 0, I) p(x | z) dz. A chain begins at a draw of the
// prior and passes through the densities N(z; 0, I) p(x | z)^β_k, β_0 = 0 … β_K = 1, by one HMC step at each
// of β_1 … β_(K−1); its weight is w = Π p(x | z_(k−1))^(β_k − β_(k−1)), and E[w] = p(x). Step sizes are tuned by a
// pilot run with random numbers of its own and then frozen, so that this stays exact: docs/math.md.
struct AnnealingConfig {
  int steps = 1500;  // K
  int chains = 8;    // of every point
  int leapfrog = 3;
};

// Throws InputError where an annealing cannot be made so.
void check(const AnnealingConfig& config);

// Points whose chains share step sizes, on either engine.
inline constexpr int annealing_group = 50;

std::vector<double> annealing_schedule(int steps);  // β_k = (k / K)³, k = 0 … K

// How the step sizes of the pilot run follow the accepted fraction of a group.
StepSizeRule annealing_step_sizes(int dimension, int steps);

// Random numbers: chain c of datum n is "datum" n · chains + c of the streams of these iterations; its step is k.
inline constexpr std::uint32_t annealing_iteration = 0xC000'0000u;
enum class AnnealingPass : std::uint32_t { pilot, forward, backward };
constexpr std::uint32_t iteration_of(AnnealingPass pass) {
  return annealing_iteration + static_cast<std::uint32_t>(pass);
}

// A chain's value and gradient at temperature `from`, β ℓ(z) + log N(z; 0, I), as they are at `to`; ℓ = log p(x | z).
struct Retemper {
  double from, to;  // above 0

  HONE_INLINE double log_likelihood(double value, double log_prior) const { return (value - log_prior) / from; }
  HONE_INLINE double value(double old, double log_prior) const {
    return to * log_likelihood(old, log_prior) + log_prior;
  }
  HONE_INLINE double slope(double old, double z) const { return to * ((old + z) / from) - z; }
};

struct AnnealedPoint {
  ImportanceEstimate estimate;          // of log p(x); backward: the upper bound
  double acceptance = 0;                // mean acceptance probability of all chains at all temperatures
  std::int64_t rejected_nonfinite = 0;  // proposals
};

// log weights of a point's chains → the estimate. Forward log mean(w), at most log p(x) in the mean; backward
// −log mean(1 / w), at least log p(x) in the mean.
ImportanceEstimate annealed_estimate(std::span<const double> log_weight, AnnealingPass pass);

// What chains of some points have come to, `each` of a point one after the other → the points' figures.
struct AnnealedChains {
  std::span<const double> log_weight;
  std::span<const double> acceptance;  // sums over temperatures
  std::span<const int> nonfinite;      // likewise
  int each;
  int steps;  // K
  AnnealingPass pass;
};
std::vector<AnnealedPoint> annealed_points(const AnnealedChains& chains);

// Moves the chains of groups of points. The target has log p(x, z) with z ~ N(0, I), one posterior a datum. It owns
// scratch memory: one a thread.
class Annealer {
 public:
  Annealer(const Target& target, const AnnealingConfig& config, const RandomSource& random);

  // The first `wanted` of the group of data [first, first + count), all of which tune the step sizes.
  std::vector<AnnealedPoint> forward(std::uint32_t first, int count, int wanted);
  // From exact draws of the group's posteriors, (D, count), to the prior: known for simulated data alone.
  std::vector<AnnealedPoint> backward(std::uint32_t first, MatrixView<const double> posterior_draws, int wanted);

 private:
  struct Run;
  std::vector<double> tuned(std::uint32_t first, int count);

  const Target& target_;
  AnnealingConfig config_;
  const RandomSource& random_;
  std::vector<double> schedule_;
};

// Means over points. The chains' own uncertainty (chain_se) is part of se where points differ by chance alone.
struct AnnealingSummary {
  Estimate log_likelihood;  // with its standard error over points; −∞ where some point has no weight
  double chain_se = 0;      // of the mean, from the spread of each point's weights; NaN with one chain
  double effective_chains = 0;
  double acceptance = 0;
  int points = 0;
  int points_without_weight = 0;
  std::int64_t rejected_nonfinite = 0;
};
AnnealingSummary summarize(std::span<const AnnealedPoint> points, const AnnealingConfig& config);

}  // namespace hone
