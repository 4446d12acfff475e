#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hone/assess/psis.hpp"
#include "hone/assess/verdict.hpp"
#include "hone/fit/posterior_fit.hpp"
#include "hone/target/posterior.hpp"

namespace hone {

inline constexpr std::int64_t default_gradients = 4'000'000;

struct CheckedFitConfig {
  CheckedFitConfig() { fit.budget.gradients = default_gradients; }

  PosteriorFitConfig fit;  // its budget is that of everything; the fit of q gets a sixteenth of the gradients (a third
                           // of the seconds), refining the rest
  int draws = 4000;
  Tolerances tolerances;
};

// One value on the natural scale, by q's draws and by the refined ones. NaN where a draw's value is not finite.
struct ParameterSummary {
  std::string name;
  double q_mean, q_sd;
  double mean, sd, mcse, q05, q50, q95;
  double is_mean, is_sd;  // importance-weighted draws of q; NaN where k-hat is 0.7 or more
};

// A fit with its refined draws and the verdict on both.
struct CheckedFit {
  PosteriorFit fit;
  RefinedDraws refined;                                // over the coordinates e of fit.q
  Psis weights;                                        // of refined.z0
  std::vector<double> log_p0, log_q0, log_pt, log_qt;  // of the unconstrained z, q normalised
  Matrix<double> natural_q, natural_refined;           // (names, n) at z0 and z_t
  std::vector<ParameterSummary> parameters;            // as Posterior::names()
  Findings findings;
  Judgement judgement;
  std::int64_t gradients = 0;
  double fit_seconds = 0, seconds = 0;
};

// What is being done ("kl, 256 iterations", "refined 16 steps, nested R-hat 1.02") and the gradients spent so far.
using CheckedFitProgress = std::function<void(const std::string&, std::int64_t)>;

// Fits q, refines its draws until they can be trusted or the budget ends, compares both, and judges. Bits depend on the
// seed alone, unless the budget is one of seconds. Throws as fit_posterior does, with the names of coordinates, and
// with the posterior's complaint where it is nowhere finite.
CheckedFit fit_and_check(const Posterior& posterior, const CheckedFitConfig& config,
                         const CheckedFitProgress& progress = {});

}  // namespace hone
