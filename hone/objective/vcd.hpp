#pragma once

#include "hone/objective/objective.hpp"

namespace hone {

// The variational contrastive divergence and its α-generalisation (appendix 2):
//   −∇ VCD_α = ∇ E_q[f] − α ∇ E_q(t)[f].
class VcdObjective final : public Objective {
 public:
  VcdObjective(const ObjectiveConfig& config, const Family& family, const BaselineFactory& baselines);
  bool refines() const override { return true; }
  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override;
  double baseline() const override { return second_.baseline(); }

 private:
  double alpha_;
  FirstTermGradient first_;
  SecondTermGradient second_;
};

}  // namespace hone
