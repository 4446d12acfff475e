#pragma once

#include <vector>

#include "hone/base/clones.hpp"
#include "hone/mcmc/kernel.hpp"

namespace hone {

// Leapfrog steps of a trajectory, uniform on leapfrog − jitter … leapfrog + jitter: on both engines.
HONE_INLINE int jittered(int leapfrog, int jitter, double uniform) {
  return leapfrog - jitter + static_cast<int>(uniform * (2 * jitter + 1));
}

// Hamiltonian Monte Carlo with the identity mass matrix and fresh momenta at every step. A trajectory of L leapfrog
// steps costs L gradients, since the gradient at the accepted point is kept. With jitter every chain draws its own
// number of steps, uniform on L − jitter … L + jitter, independently of where it stands: still reversible, and the
// resonances of a fixed length are gone.
class Hmc final : public Kernel {
 public:
  explicit Hmc(int leapfrog, int jitter = 0, StepSizes step_sizes = StepSizes::fixed);  // 0 ≤ jitter < leapfrog

  Want wants() const override { return Want::both; }
  void step(const Target& target, const Move& move, const ChainsView& chains) override;

 private:
  void step_block(const Target& target, const Move& move, const ChainsView& chains);
  void reserve(int dimension, int count);
  void order_by_length(const Move& move, const ChainsView& chains);
  void choose_step_sizes(const Move& move, const ChainsView& chains);
  void start(const Move& move, const ChainsView& chains);
  void integrate(const Target& target, int count);

  int leapfrog_;
  int jitter_;
  StepSizes step_sizes_;
  // The trajectories, longest first, so that those still under way are the first columns.
  std::vector<int> order_;            // trajectory → chain
  std::vector<std::uint32_t> datum_;  // trajectory → datum
  std::vector<int> length_;           // leapfrog steps of a trajectory, descending
  std::vector<double> step_size_;     // of a trajectory
  std::vector<double> value_;
  std::vector<double> energy_;  // kinetic energy at the start
  Matrix<double> position_, momentum_, slope_;
};

}  // namespace hone
