#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hone/base/random.hpp"
#include "hone/target/target.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// What became of a chain's proposal. A proposal where the target is not finite is a counted rejection. A chain that
// stands outside the support (its value is −∞) never moves and counts nowhere.
enum class Outcome : std::uint8_t { rejected, accepted, nonfinite, outside };

// Some of a batch of chains, with the target's value and gradient where they stand.
struct ChainsView {
  MatrixView<double> z;          // (D, n)
  std::span<double> value;       // log p(x, z)
  MatrixView<double> gradient;   // (D, n)
  std::span<double> acceptance;  // probability with which the last proposal was to be accepted
  std::span<Outcome> outcome;    // of the last proposal
  std::uint32_t first_datum;     // column c moves by the random numbers, and in the posterior, of datum first_datum + c

  int count() const { return z.cols(); }
  std::uint32_t datum(int chain) const { return first_datum + static_cast<std::uint32_t>(chain); }
  ChainsView range(int begin, int end) const;
};

struct Chains {
  Chains(int dimension, int count);
  ChainsView view(std::uint32_t first_datum = 0);

  Matrix<double> z;
  std::vector<double> value;
  Matrix<double> gradient;
  std::vector<double> acceptance;
  std::vector<Outcome> outcome;
};

// Which random numbers and which step size a step uses.
struct Move {
  const RandomSource& random;
  std::uint32_t iteration;
  std::uint32_t step;
  double step_size;
};

// An MCMC transition that leaves the target invariant. It owns scratch memory: one kernel a thread.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // What must be known of the target where the chains stand before the first step; steps keep it up to date.
  virtual Want wants() const = 0;

  // Moves every chain once and says what became of the proposals.
  virtual void step(const Target& target, const Move& move, const ChainsView& chains) = 0;
};

// Where a chain may go: the gradient may be empty.
struct Proposal {
  double log_ratio;
  double value;
  std::span<const double> z, gradient;
};

// Moves the chain with probability min(1, exp(log_ratio)); a log_ratio that is not a number, or a non-finite value,
// rejects. Fills the chain's acceptance and outcome.
void metropolis(const Proposal& proposal, const Move& move, const ChainsView& chains, int chain);

enum class KernelKind { hmc, mala, random_walk };

// Which step sizes a trajectory of hmc takes.
enum class StepSizes {
  fixed,   // ε
  varied,  // each chain's own ε / 2^j with P(j) ∝ 1 / (j + 1)², j = 0 … 10, whatever its place: still reversible.
           // Chains in places too stiff for ε are stuck for a while only, at the price of shorter trajectories now and
           // then
};

struct KernelConfig {
  KernelKind kind = KernelKind::hmc;
  int leapfrog = 5;         // hmc: leapfrog steps L
  int leapfrog_jitter = 0;  // hmc: each chain's number of steps is uniform on L − jitter … L + jitter
  StepSizes step_sizes = StepSizes::fixed;  // hmc
};

std::unique_ptr<Kernel> make_kernel(const KernelConfig& config);

// The acceptance that the step size of a kernel aims at, as in the authors' code for the toys.
double default_acceptance(KernelKind kind);

}  // namespace hone
