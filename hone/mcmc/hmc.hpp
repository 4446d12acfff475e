#pragma once

#include <vector>

#include "hone/mcmc/kernel.hpp"

namespace hone {

/// Which step sizes a trajectory takes.
enum class StepSizes {
  fixed,   ///< ε
  varied,  ///< each chain's own ε / 2^j with P(j) ∝ 1 / (j + 1)², j = 0 … 10, wherever it is: still reversible.
           ///< Chains in places where ε is too large leave them by one of the smaller steps. The price is that some
           ///< trajectories are short
};

/// The settings of HMC.
struct HmcConfig {
  int leapfrog = 5;  ///< leapfrog steps L, at least 1
  int jitter = 0;    ///< each chain's number of steps is uniform on L − jitter … L + jitter; 0 ≤ jitter < L
  StepSizes step_sizes = StepSizes::fixed;  ///< fixed or varied
};

/// Hamiltonian Monte Carlo with the identity mass matrix and fresh momenta at every step. A trajectory of L leapfrog
/// steps costs L gradients, since the gradient at the accepted point is kept. With jitter every chain draws its own
/// number of steps, uniform on L − jitter … L + jitter, independently of where it stands: still reversible, and the
/// resonances of a fixed length are gone.
class Hmc final : public Kernel {
 public:
  explicit Hmc(const HmcConfig& config = {});  ///< throws InputError if leapfrog or jitter is impossible

  std::unique_ptr<Kernel> clone() const override { return std::make_unique<Hmc>(config_); }
  Want wants() const override { return Want::both; }
  void step(const Target& target, const Move& move, const ChainsView& chains) override;
  double default_acceptance() const override { return 0.7; }  ///< as in the authors' code for the toys
  double evaluations_per_step() const override { return config_.leapfrog; }
  const HmcConfig* as_hmc() const override { return &config_; }

 private:
  void step_block(const Target& target, const Move& move, const ChainsView& chains);
  void reserve(int dimension, int count);
  void order_by_length(const Move& move, const ChainsView& chains);
  void choose_step_sizes(const Move& move, const ChainsView& chains);
  void start(const Move& move, const ChainsView& chains);
  void integrate(const Target& target, int count);

  HmcConfig config_;
  // The trajectories, longest first, so that those still under way are the first columns.
  std::vector<int> order_;            // trajectory → chain
  std::vector<std::uint32_t> datum_;  // trajectory → datum
  std::vector<int> length_;           // leapfrog steps of a trajectory, descending
  std::vector<double> step_size_;     // of a trajectory
  std::vector<double> value_;
  std::vector<double> energy_;  // kinetic energy at the start
  Matrix<double> position_, momentum_, gradient_;
};

}  // namespace hone
