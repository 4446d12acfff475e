#pragma once

#include "hone/mcmc/kernel.hpp"

namespace hone {

// Metropolis-adjusted Langevin: z' = z + (δ/2) ∇ log p(z) + √δ ξ, δ the step size.
class Mala final : public Kernel {
 public:
  Want wants() const override { return Want::both; }
  void step(const Target& target, const Move& move, const ChainsView& chains) override;

 private:
  Matrix<double> noise_, position_, slope_;
  std::vector<double> value_;
  std::vector<std::uint32_t> datum_;
};

}  // namespace hone
