#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "hone/objective/baseline.hpp"
#include "hone/objective/evidence.hpp"

namespace hone {

/// The terms of −∇VCD = ∇E_q[f] − ∇E_q(t)[f].
enum class Term { first, second };

/// How ∇_θ E_q[f] is estimated.
enum class FirstTerm { reparameterized, score };

/// Whether the score at z0 of eq. gradient_term2 is kept, or dropped as the paper allows for large t.
enum class Estimator { full, large_t };

/// Whether E_q[−log q] and its gradient are exact (a Gaussian; appendix 3, the authors' choice) or sampled at z0.
enum class Entropy { automatic, analytic, sampled };

/// A factor that grows over iterations, counted from 1: 0 up to `from`, then a straight line, 1 from `until` on.
struct Ramp {
  std::uint32_t from = 0;   ///< the last iteration at 0, unless `until` is not above it
  std::uint32_t until = 0;  ///< the first iteration at 1; 0: always 1
  /// The factor of an iteration.
  constexpr double at(std::uint32_t iteration) const {
    if (iteration >= until) return 1;
    return iteration <= from ? 0 : static_cast<double>(iteration - from) / (until - from);
  }
};

/// Whether `entropy` means the analytic form for this family. Throws InputError if it asks for the analytic form and
/// the family has none.
bool analytic_entropy(Entropy entropy, const Family& family);

class FirstTermGradient;   // terms.hpp
class SecondTermGradient;  // terms.hpp

/// An objective as a sum of the paper's terms, for engines that execute it themselves (cuda).
struct ObjectiveTerms {
  bool refines = false;                               ///< whether the model learns at z_t
  bool first = true;                                  ///< + ∇E_q[f], eq. gradient_term1, estimated by …
  FirstTerm first_term = FirstTerm::reparameterized;  ///< the estimator of ∇E_q[f]
  Entropy entropy = Entropy::automatic;               ///< exact or sampled entropy of q
  bool start_score = false;    ///< − α (f(z_t) − C) ∇ log q(z0): eq. gradient_term2, second term
  bool refined_score = false;  ///< + α ∇ log q(z_t): eq. gradient_term2, first term
  double alpha = 1;            ///< the factor on both scores, times the ramp
  Ramp ramp = {};              ///< of α over iterations
  double score_bound = std::numeric_limits<double>::infinity();  ///< |f(z_t) − C| counts as at most this

  /// Whether the first term is estimated by the score.
  bool score_first() const { return first && first_term == FirstTerm::score; }
  /// Whether a term needs a control variate.
  bool uses_baseline() const { return score_first() || start_score; }
};

/// Makes the baseline of a term; asked for only by terms that use one.
using BaselineFactory = std::function<std::unique_ptr<Baseline>(Term)>;

/// Which gradient θ follows. Owns no parameters, but its control variate learns from iteration to iteration: a fit
/// works on a clone of the objective that a caller gives.
class Objective {
 public:
  virtual ~Objective() = default;
  /// The same objective, which has learned nothing yet.
  virtual std::unique_ptr<Objective> clone() const = 0;
  virtual std::string name() const { return "own objective"; }  ///< in messages

  virtual bool refines() const = 0;  ///< whether it needs z_t: without it no chain is run
  /// Adds the direction that θ is to move in: the gradient of minus the objective.
  virtual void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) = 0;

  /// Whether E_q[log q] is exact rather than sampled at z0 (a Gaussian q; appendix 3), in the gradient and in the
  /// estimates of a fit. Then ∇_z log q at z0 is not computed. Throws InputError where the family has no such form.
  virtual bool analytic(const Family&) const { return false; }
  virtual int least_draws() const { return 1; }  ///< per component of q and iteration, with its present baselines

  virtual double baseline() const { return 0; }  ///< C of the second term, where it is one number
  /// Replaces the baselines of its terms: training a q per datum needs a baseline per datum. To be called before the
  /// first batch. An objective with a control variate of its own may ignore it.
  virtual void use_baselines(const BaselineFactory&) {}

  /// None: the objective is not a sum of the paper's terms.
  virtual std::optional<ObjectiveTerms> terms() const { return std::nullopt; }
};

/// One iteration's estimates of the ELBO (eq. elbo) and of the VCD (eq. new_divergence_rearranged; always for α = 1):
/// means by weight; NaN where no draw is left. `analytic`: appendix 3's form, with E_q[log q] exact
/// (eq2:objective_simplified).
double elbo_estimate(const Family& family, const Evidence& evidence, bool analytic);
/// One iteration's estimate of the VCD; see elbo_estimate.
double vcd_estimate(const Family& family, const Evidence& evidence, bool analytic);

}  // namespace hone
