#pragma once

#include "hone/objective/objective.hpp"

namespace hone {

/// The settings of the VCD objective.
struct VcdConfig {
  double alpha = 1;                                              ///< appendix 2's α, in [0, 1] …
  Ramp ramp = {};                                                ///< … times this factor, which grows over iterations
  double score_bound = std::numeric_limits<double>::infinity();  ///< of |f(z_t) − C|, the weight of the score at z0
  Estimator estimator = Estimator::full;                         ///< large_t drops the score at z0
  FirstTerm first_term = FirstTerm::reparameterized;             ///< the estimator of ∇E_q[f]
  Entropy entropy = Entropy::automatic;                          ///< exact or sampled entropy of q
  BaselineKind baseline = BaselineKind::global;                  ///< the control variate
  double baseline_decay = 0.9;                                   ///< γ
};

/// The variational contrastive divergence and its α-generalisation (appendix 2):
///   −∇ VCD_α = ∇ E_q[f] − α ∇ E_q(t)[f].
class Vcd final : public Objective {
 public:
  explicit Vcd(const VcdConfig& config = {});  ///< InputError if α is outside [0, 1] or the bound is negative
  ~Vcd() override;

  std::unique_ptr<Objective> clone() const override { return std::make_unique<Vcd>(config_); }
  std::string name() const override { return "vcd"; }
  bool refines() const override { return true; }
  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override;
  bool analytic(const Family& family) const override { return analytic_entropy(config_.entropy, family); }
  int least_draws() const override { return least_draws_; }
  double baseline() const override;
  void use_baselines(const BaselineFactory& make) override;
  std::optional<ObjectiveTerms> terms() const override;

 private:
  VcdConfig config_;
  std::unique_ptr<FirstTermGradient> first_;
  std::unique_ptr<SecondTermGradient> second_;
  int least_draws_ = 1;
};

}  // namespace hone
