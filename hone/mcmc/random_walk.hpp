#pragma once

#include "hone/mcmc/kernel.hpp"

namespace hone {

/// Random-walk Metropolis: z' = z + √δ ξ, δ the step size. It needs no gradients and keeps none.
class RandomWalk final : public Kernel {
 public:
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<RandomWalk>(); }
  Want wants() const override { return Want::value; }
  void step(const Target& target, const Move& move, const ChainsView& chains) override;
  double default_acceptance() const override { return 0.4; }  ///< as in the authors' code for the toys

 private:
  Matrix<double> position_;
  std::vector<double> value_;
  std::vector<std::uint32_t> datum_;
};

}  // namespace hone
