#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/family/family.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/objective/vcd.hpp"
#include "hone/target/whitening.hpp"

namespace hone {

/// How coordinates and family of q are chosen together.
enum class QKind {
  automatic,      ///< full up to most_full_dimensions, by curvature up to most_dense_dimensions, low-rank beyond; a
                  ///< mixture where it is full and starts found separate modes
  gaussian,       ///< independent coordinates
  gaussian_full,  ///< a Cholesky factor
  gaussian_curvature,  ///< the inverse curvature's Cholesky factor at the best start, times a diagonal, which is fitted
  gaussian_low_rank,   ///< diagonal times (identity plus low rank) times diagonal; the low rank comes from the searches
  mixture,             ///< of full Gaussians, one per mode
  own,                 ///< of PosteriorFitConfig::own_family, in the coordinates of the best start; never asked for
};

/// Makes a family of a given dimension. It stands for q over coordinates e in which the posterior is about standard
/// normal, and should begin near that.
using FamilyMaker = std::function<std::unique_ptr<Family>(int dimension)>;

inline constexpr int most_full_dimensions = 300;    ///< QKind::automatic fits a full covariance up to this dimension
inline constexpr int most_dense_dimensions = 1000;  ///< QKind::automatic keeps a dense whitening up to this dimension
inline constexpr double negligible_mass = 7;        ///< nats

/// What a fit may spend; 0: no limit.
struct Budget {
  std::int64_t gradients = 0;               ///< evaluations of the gradient
  double seconds = 0;                       ///< wall time
  const std::atomic<bool>* stop = nullptr;  ///< true: everything is spent; may be set from another thread
};

/// How fit_posterior searches and fits. The defaults need no tuning.
struct PosteriorFitConfig {
  QKind family = QKind::automatic;  ///< the form of q
  FamilyMaker own_family;           ///< instead of what `automatic` chooses
  /// What q follows after stages by the KL; null: the KL alone. Every stage counts its iterations from 1.
  std::shared_ptr<const Objective> objective =
      std::make_shared<Vcd>(VcdConfig{.entropy = Entropy::sampled, .baseline = BaselineKind::leave_one_out});
  int kl_stages = 7;             ///< at most this many by the KL; each has twice the iterations of the one before
  int steps = 8;                 ///< t
  int draws_per_iteration = 16;  ///< per component of q
  int starts = 8;                ///< number of searches
  Matrix<double> init;           ///< (D, k): where the first k of them begin; the others begin near these points
  std::shared_ptr<const Kernel> kernel =
      std::make_shared<Hmc>(HmcConfig{5, 4, StepSizes::varied});  ///< leapfrog steps uniform on 1 … 9
  double acceptance = 0.8;                                        ///< that step sizes aim at
  double least_acceptance = 0.5;                                  ///< no θ-step below it
  Budget budget;                                                  ///< what the fit may spend
  std::uint64_t seed = 1;                                         ///< of the random numbers
  int threads = 1;                                                ///< results do not depend on it
};

/// q(z) as it is kept: coordinates e with z = m + L e, and a family over e.
struct FittedQ {
  QKind kind = QKind::gaussian_full;  ///< never automatic
  Whitening whitening;                ///< the coordinates e
  std::unique_ptr<Family> family;     ///< q over e
};

/// One stage of a fit: fixed coordinates, in which the q that it began with is about standard normal.
struct Stage {
  std::string objective;       ///< its name
  std::uint32_t iterations;    ///< number of iterations
  double change;               ///< symmetrised KL between the averaged q before it and the one after it
  double acceptance = 0;       ///< mean over its iterations; 0 where nothing is refined
  double step_size = 0;        ///< the last one; meaningless where nothing is refined
  std::int64_t skipped = 0;    ///< iterations without a θ-step
  std::int64_t gradients = 0;  ///< evaluations since the fit began, at its end
};

/// What one search found: the best local Gaussian approximation along its way, by a rough estimate of the ELBO. Not
/// simply the one at its end: a posterior may have no mode (a funnel's density grows without bound in its neck).
struct LocalNormal {
  Whitening whitening;        ///< of the approximation: z = m + L e, e ~ N(0, I)
  double elbo;                ///< of the approximation, from few draws
  std::vector<double> start;  ///< where the search began
  std::vector<double> end;    ///< where it ended
  double value;               ///< log p there
  bool converged;             ///< whether the search converged
};

/// A fitted q and how it was found.
struct PosteriorFit {
  FittedQ q;                        ///< the fitted q
  std::vector<LocalNormal> starts;  ///< what the searches found
  /// Starts that ended at the same mode share a number; −1: left out, since its approximation's ELBO lies more than
  /// negligible_mass below the best one's.
  std::vector<int> mode_of_start;
  int modes = 1;                        ///< number of separate modes
  std::vector<Stage> stages;            ///< the stages of the fit
  bool converged = false;               ///< the last stage of the objective changed q little
  std::int64_t gradients = 0;           ///< evaluations of log p or its gradient
  std::int64_t dropped_draws = 0;       ///< draws of q outside the support
  std::int64_t rejected_nonfinite = 0;  ///< proposals at which the posterior was not finite
};

/// A posterior without a point of finite density, as far as the starts saw.
class NowhereFinite : public InputError {
 public:
  using InputError::InputError;
};

/// q grows or moves without end: the posterior seems to have no finite mass.
class RunsAway : public InputError {
 public:
  /// `name` is the coordinate's name in the message, if it has one.
  explicit RunsAway(int along, const std::string& name = {});
  int coordinate;  ///< unconstrained, from 0: where it is worst
};

/// Called after every stage, and once, without one, after the searches from the first starts: the fit so far, to be
/// read during the call only. q is preliminary before the first stage.
using FitObserver = std::function<void(const PosteriorFit&, const Stage*)>;

/// Fits q to a posterior without tuning: searches from several starts, then stages by KL, then by the objective (VCD),
/// whose coordinates are whitened anew by the averaged q of the stage before. Within a stage the kernel depends on
/// nothing that it moves but a step size that follows earlier iterations, so that eq. gradient_term2 holds. Stops where
/// successive averaged q are close, or at the budget. The result depends on the seed, not on the number of threads (a
/// budget of seconds aside). Throws InputError for an impossible configuration, NowhereFinite, and RunsAway.
PosteriorFit fit_posterior(const Target& target, const PosteriorFitConfig& config, const FitObserver& observe = {});

}  // namespace hone
