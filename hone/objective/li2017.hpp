#pragma once

#include <vector>

#include "hone/objective/objective.hpp"

namespace hone {

/// Related work (Li, Turner and Liu 2017): KL(q(t) ‖ q) with the dependence of q(t) on θ ignored, so θ follows
/// E_q(t)[∇ log q] alone. Not the gradient of any divergence; the paper calls it unstable at small t.
class Li2017 final : public Objective {
 public:
  /// The entropy serves the reported estimates of ELBO and VCD; the gradient has none.
  explicit Li2017(Entropy entropy = Entropy::automatic) : entropy_(entropy) {}

  std::unique_ptr<Objective> clone() const override { return std::make_unique<Li2017>(entropy_); }
  std::string name() const override { return "li2017"; }
  bool refines() const override { return true; }
  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override;
  bool analytic(const Family& family) const override { return analytic_entropy(entropy_, family); }
  std::optional<ObjectiveTerms> terms() const override {
    return ObjectiveTerms{.refines = true, .first = false, .entropy = entropy_, .refined_score = true};
  }

 private:
  Entropy entropy_;
  std::vector<double> coefficient_;
};

}  // namespace hone
