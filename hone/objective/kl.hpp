#pragma once

#include "hone/objective/objective.hpp"

namespace hone {

/// The settings of the KL objective.
struct KlConfig {
  FirstTerm first_term = FirstTerm::reparameterized;  ///< the estimator of ∇E_q[f]
  Entropy entropy = Entropy::automatic;               ///< exact or sampled entropy of q
  BaselineKind baseline = BaselineKind::global;       ///< of FirstTerm::score
  double baseline_decay = 0.9;                        ///< γ
};

/// What Kl and Hoffman share: q follows ∇ E_q[f].
class KlAscent : public Objective {
 public:
  ~KlAscent() override;

  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override;
  bool analytic(const Family& family) const override { return analytic_entropy(config_.entropy, family); }
  int least_draws() const override { return least_draws_; }
  void use_baselines(const BaselineFactory& make) override;
  std::optional<ObjectiveTerms> terms() const override;

 protected:
  /// An objective that has learned nothing yet.
  explicit KlAscent(const KlConfig& config);
  /// The settings that it was made with.
  const KlConfig& config() const { return config_; }

 private:
  KlConfig config_;
  std::unique_ptr<FirstTermGradient> first_;
  int least_draws_ = 1;
};

/// Standard variational inference: −∇ KL(q ‖ p) = ∇ E_q[f] (eq. elbo).
class Kl final : public KlAscent {
 public:
  /// An objective that has learned nothing yet.
  explicit Kl(const KlConfig& config = {}) : KlAscent(config) {}
  std::unique_ptr<Objective> clone() const override { return std::make_unique<Kl>(config()); }
  std::string name() const override { return "kl"; }
  bool refines() const override { return false; }
};

/// Hoffman 2017: q follows the KL as above, and the model learns from the refined draws.
class Hoffman final : public KlAscent {
 public:
  /// An objective that has learned nothing yet.
  explicit Hoffman(const KlConfig& config = {}) : KlAscent(config) {}
  std::unique_ptr<Objective> clone() const override { return std::make_unique<Hoffman>(config()); }
  std::string name() const override { return "hoffman"; }
  bool refines() const override { return true; }
};

}  // namespace hone
