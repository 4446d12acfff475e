#pragma once

#include "hone/mcmc/kernel.hpp"

namespace hone {

/// Metropolis-adjusted Langevin: z' = z + (δ/2) ∇ log p(z) + √δ ξ, δ the step size.
class Mala final : public Kernel {
 public:
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<Mala>(); }
  Want wants() const override { return Want::both; }
  void step(const Target& target, const Move& move, const ChainsView& chains) override;
  double default_acceptance() const override { return 0.54; }  ///< as in the authors' code for the toys

 private:
  Matrix<double> noise_, position_, gradient_;
  std::vector<double> value_;
  std::vector<std::uint32_t> datum_;
};

}  // namespace hone
