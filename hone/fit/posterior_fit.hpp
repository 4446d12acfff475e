#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hone/family/family.hpp"
#include "hone/fit/local_normal.hpp"
#include "hone/mcmc/kernel.hpp"
#include "hone/objective/objective.hpp"
#include "hone/target/whitened.hpp"

namespace hone {

enum class QKind {
  automatic,           // full up to most_full_dimensions, by curvature up to most_dense_dimensions, low-rank beyond; a
                       // mixture where it is full and starts found separate modes
  gaussian,            // independent coordinates
  gaussian_full,       // a Cholesky factor
  gaussian_curvature,  // the inverse curvature's Cholesky factor at the best start, times a diagonal, which is fitted
  gaussian_low_rank,   // diagonal times (identity plus low rank) times diagonal; the low rank comes from the searches
  mixture,             // of full Gaussians, one a mode
};

inline constexpr int most_full_dimensions = 300, most_dense_dimensions = 1000;
inline constexpr double negligible_mass = 7;  // nats

// What a fit may spend; 0: no limit.
struct Budget {
  std::int64_t gradients = 0;
  double seconds = 0;
};

struct PosteriorFitConfig {
  QKind family = QKind::automatic;
  ObjectiveKind objective = ObjectiveKind::vcd;  // or kl; a vcd fit begins with kl
  int steps = 8;                                 // t
  int draws_per_iteration = 16;
  int starts = 8;
  KernelConfig kernel{KernelKind::hmc, 5, 4, StepSizes::varied};  // leapfrog steps uniform on 1 … 9
  double acceptance = 0.8;                                        // that step sizes aim at
  double least_acceptance = 0.5;                                  // no θ-step below it
  Budget budget;
  std::uint64_t seed = 1;
  int threads = 1;
};

// q(z) as it is kept: coordinates e with z = m + L e, and a family over e.
struct FittedQ {
  QKind kind = QKind::gaussian_full;  // never automatic
  Whitening whitening;
  std::unique_ptr<Family> family;
};

// One stage of a fit: fixed coordinates, in which the q that it began with is about standard normal.
struct Stage {
  ObjectiveKind objective;
  std::uint32_t iterations;
  double change;               // symmetrised KL between the averaged q before it and the one after it
  double acceptance = 0;       // vcd: mean over its iterations
  double step_size = 0;        // vcd: the last one
  std::int64_t skipped = 0;    // vcd: iterations without a θ-step
  std::int64_t gradients = 0;  // evaluations since the fit began, at its end
};

struct PosteriorFit {
  FittedQ q;
  std::vector<LocalNormal> starts;
  // Starts that ended at the same mode share a number; −1: left out, since its approximation's ELBO lies more than
  // negligible_mass below the best one's.
  std::vector<int> mode_of_start;
  int modes = 1;
  std::vector<Stage> stages;
  bool converged = false;          // the last stage of the objective changed q little
  std::int64_t gradients = 0;      // evaluations of log p or its gradient
  std::int64_t dropped_draws = 0;  // draws of q outside the support
  std::int64_t rejected_nonfinite = 0;
};

// q grows or moves without end: the posterior seems to have no finite mass.
class RunsAway : public InputError {
 public:
  explicit RunsAway(int along, const std::string& name = {});
  int coordinate;  // unconstrained, from 0: where it is worst
};

// Called after every stage (and once after the searches, without one): the fit so far. May copy q.
using FitObserver = std::function<void(const PosteriorFit&, const Stage*)>;

// Fits q to a posterior without tuning: searches from several starts, then stages by KL, then by VCD, whose coordinates
// are whitened anew by the averaged q of the stage before. Within a stage the kernel depends on nothing that it moves
// but a step size that follows earlier iterations, so that eq. gradient_term2 holds. Stops where successive averaged q
// are close, or at the budget. The result depends on the seed, not on the number of threads (a budget of seconds
// aside). Throws InputError for an impossible configuration, NowhereFinite, and RunsAway.
PosteriorFit fit_posterior(const Target& target, const PosteriorFitConfig& config, const FitObserver& observe = {});

}  // namespace hone
