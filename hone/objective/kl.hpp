#pragma once

#include "hone/objective/objective.hpp"

namespace hone {

// Standard variational inference: −∇ KL(q ‖ p) = ∇ E_q[f] (eq. elbo).
class KlObjective final : public Objective {
 public:
  KlObjective(const ObjectiveConfig& config, const Family& family);
  bool refines() const override { return false; }
  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override {
    first_.add(family, evidence, gradient);
  }

 private:
  FirstTermGradient first_;
};

}  // namespace hone
