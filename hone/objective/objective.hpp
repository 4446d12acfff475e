#pragma once

#include <functional>
#include <memory>
#include <span>

#include "hone/objective/baseline.hpp"
#include "hone/objective/evidence.hpp"
#include "hone/objective/terms.hpp"

namespace hone {

enum class ObjectiveKind { kl, hoffman, vcd, li2017 };

struct ObjectiveConfig {
  ObjectiveKind kind = ObjectiveKind::vcd;
  double alpha = 1;                                   // vcd: appendix 2's α, in [0, 1]
  Estimator estimator = Estimator::full;              // vcd
  FirstTerm first_term = FirstTerm::reparameterized;  // kl and vcd
  Entropy entropy = Entropy::automatic;               // kl and vcd
  BaselineKind baseline = BaselineKind::global;
  double baseline_decay = 0.9;  // γ
};

// Which gradient θ follows. Owns no parameters, but its control variate learns from iteration to iteration.
class Objective {
 public:
  virtual ~Objective() = default;
  virtual bool refines() const = 0;  // whether it reads z_t
  // Adds the direction that θ is to move in: the gradient of minus the objective.
  virtual void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) = 0;
  virtual double baseline() const { return 0; }  // C of the second term, where it is one number
};

// Makes the baseline of a term, asked for only by terms that use one; by default the one that the configuration names.
using BaselineFactory = std::function<std::unique_ptr<Baseline>(Term)>;

std::unique_ptr<Objective> make_objective(const ObjectiveConfig& config, const Family& family,
                                          const BaselineFactory& baselines = {});

// Whether the objective has a score-function term, and so a baseline.
bool uses_baseline(const ObjectiveConfig& config);

// One iteration's estimates of the ELBO (eq. elbo) and of the VCD (eq. new_divergence_rearranged; always for α = 1):
// means by weight; NaN where no draw is left. `analytic`: appendix 3's form, with E_q[log q] exact
// (eq2:objective_simplified).
double elbo_estimate(const Family& family, const Evidence& evidence, bool analytic);
double vcd_estimate(const Family& family, const Evidence& evidence, bool analytic);

}  // namespace hone
