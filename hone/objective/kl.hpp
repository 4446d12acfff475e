#pragma once

#include "hone/objective/objective.hpp"

namespace hone {

// Standard variational inference: −∇ KL(q ‖ p) = ∇ E_q[f] (eq. elbo).
class KlObjective : public Objective {
 public:
  KlObjective(const ObjectiveConfig& config, const Family& family, const BaselineFactory& baselines);
  bool refines() const override { return false; }
  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override {
    first_.add(family, evidence, gradient);
  }

 private:
  FirstTermGradient first_;
};

// Hoffman 2017: q follows the KL as above, while the model learns from the refined draws, so that these are needed too.
class HoffmanObjective final : public KlObjective {
 public:
  using KlObjective::KlObjective;
  bool refines() const override { return true; }
};

}  // namespace hone
