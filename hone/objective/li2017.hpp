#pragma once

#include "hone/objective/objective.hpp"

namespace hone {

// Related work (Li, Turner and Liu 2017): KL(q(t) ‖ q) with the dependence of q(t) on θ ignored, so θ follows
// E_q(t)[∇ log q] alone. Not the gradient of any divergence; the paper calls it unstable at small t.
class Li2017Objective final : public Objective {
 public:
  bool refines() const override { return true; }
  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override {
    add_refined_score(family, evidence, 1, coefficient_, gradient);
  }

 private:
  std::vector<double> coefficient_;
};

}  // namespace hone
