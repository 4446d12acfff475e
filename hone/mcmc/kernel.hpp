#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hone/base/random.hpp"
#include "hone/target/target.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

/// What became of a chain's proposal. A proposal where the target is not finite is a counted rejection. A chain that
/// stands outside the support (its value is −∞) never moves and counts nowhere.
enum class Outcome : std::uint8_t { rejected, accepted, nonfinite, outside };

/// Some of a batch of chains, with the target's value and gradient where they stand.
struct ChainsView {
  MatrixView<double> z;          ///< (D, n)
  std::span<double> value;       ///< log p(x, z)
  MatrixView<double> gradient;   ///< (D, n)
  std::span<double> acceptance;  ///< acceptance probability of the last proposal
  std::span<Outcome> outcome;    ///< of the last proposal
  std::uint32_t first_datum;  ///< column c moves by the random numbers, and in the posterior, of datum first_datum + c

  /// n
  int count() const { return z.cols(); }
  /// The datum whose random numbers move a chain.
  std::uint32_t datum(int chain) const { return first_datum + static_cast<std::uint32_t>(chain); }
  /// The chains [begin, end).
  ChainsView range(int begin, int end) const;
};

/// A batch of chains that owns its memory.
struct Chains {
  /// `count` chains of one dimension, all zeros.
  Chains(int dimension, int count);
  /// All chains; column c has the random numbers of datum first_datum + c.
  ChainsView view(std::uint32_t first_datum = 0);

  Matrix<double> z;                ///< the points (D, n)
  std::vector<double> value;       ///< log p(x, z) at the points
  Matrix<double> gradient;         ///< its gradient (D, n)
  std::vector<double> acceptance;  ///< acceptance probabilities of the last proposals
  std::vector<Outcome> outcome;    ///< outcomes of the last proposals
};

/// Which random numbers and which step size a step uses.
struct Move {
  const RandomSource& random;  ///< source of the random numbers
  std::uint32_t iteration;     ///< names the random numbers
  std::uint32_t step;          ///< names the random numbers
  double step_size;            ///< ε of HMC, δ of MALA and random walk
};

struct HmcConfig;

/// An MCMC transition that leaves the target invariant. It owns scratch memory: one kernel per thread, cloned from the
/// one that a caller gives.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// The same transition with scratch memory of its own.
  virtual std::unique_ptr<Kernel> clone() const = 0;
  /// What the caller must evaluate at the chains before the first step; steps keep it up to date.
  virtual Want wants() const = 0;

  /// Moves every chain once and says what became of the proposals.
  virtual void step(const Target& target, const Move& move, const ChainsView& chains) = 0;

  /// The acceptance that a Refiner aims at unless RefineConfig::acceptance says otherwise.
  virtual double default_acceptance() const { return 0.57; }
  /// How often a step evaluates the target for a chain, on average.
  virtual double evaluations_per_step() const { return 1; }
  /// The settings where the kernel is HMC: engines that execute it themselves (cuda) need them. Null: another kernel.
  virtual const HmcConfig* as_hmc() const { return nullptr; }
};

/// A point that a chain may move to.
struct Proposal {
  double log_ratio;                  ///< log of the Metropolis ratio
  double value;                      ///< log p(x, z) at the proposal
  std::span<const double> z;         ///< the proposed point
  std::span<const double> gradient;  ///< the gradient there; may be empty
};

/// Moves the chain with probability min(1, exp(log_ratio)); a log_ratio that is not a number, or a non-finite value,
/// rejects. Fills the chain's acceptance and outcome.
void metropolis(const Proposal& proposal, const Move& move, const ChainsView& chains, int chain);

}  // namespace hone
