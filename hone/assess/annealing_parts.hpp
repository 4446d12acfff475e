#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hone/assess/annealing.hpp"
#include "hone/assess/importance.hpp"
#include "hone/base/clones.hpp"
#include "hone/mcmc/step_size.hpp"

// The parts of annealing that both engines share.
namespace hone {

// Data per group; the chains of a group share step sizes, on both engines.
inline constexpr int annealing_group = 50;

std::vector<double> annealing_schedule(int steps);  // β_k = (k / K)³, k = 0 … K

// How the step sizes of the pilot run follow the fraction of proposals that a group accepts.
StepSizeRule annealing_step_sizes(int dimension, int steps);

// Random numbers: chain c of datum n is "datum" n · chains + c of the streams of these iterations; its step is k.
inline constexpr std::uint32_t annealing_iteration = 0xC000'0000u;
constexpr std::uint32_t iteration_of(AnnealingPass pass) {
  return annealing_iteration + static_cast<std::uint32_t>(pass);
}

// Converts a chain's value and gradient of β ℓ(z) + log N(z; 0, I), ℓ = log p(x | z), from β = `from` to β = `to`.
struct Retemper {
  double from, to;  // above 0

  HONE_INLINE double log_likelihood(double value, double log_prior) const { return (value - log_prior) / from; }
  HONE_INLINE double value(double old, double log_prior) const {
    return to * log_likelihood(old, log_prior) + log_prior;
  }
  HONE_INLINE double gradient(double old, double z) const { return to * ((old + z) / from) - z; }
};

// The estimate from the log weights of a datum's chains. Forward log mean(w), at most log p(x) in expectation; backward
// −log mean(1 / w), at least log p(x) in expectation.
ImportanceEstimate annealed_estimate(std::span<const double> log_weight, AnnealingPass pass);

// The final state of the chains of some data, `each` consecutive chains per datum.
struct AnnealedChains {
  std::span<const double> log_weight;
  std::span<const double> acceptance;  // sums over temperatures
  std::span<const int> nonfinite;      // counts over temperatures
  int each;
  int steps;  // K
  AnnealingPass pass;
};
std::vector<AnnealedPoint> annealed_points(const AnnealedChains& chains);

}  // namespace hone
