#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hone/assess/importance.hpp"
#include "hone/assess/verdict.hpp"
#include "hone/fit/posterior_fit.hpp"
#include "hone/target/posterior.hpp"

namespace hone {

inline constexpr std::int64_t default_gradients = 4'000'000;  ///< the default budget of fit_and_check, in gradients

/// How fit_and_check fits, refines and judges.
struct CheckedFitConfig {
  CheckedFitConfig() { fit.budget.gradients = default_gradients; }

  /// Its budget covers everything. The fit of q gets a sixteenth of the gradients (a third of the seconds),
  /// refining the rest. The plain VCD (Vcd with α = 1, no ramp, no bound and the default estimators) of a Gaussian q is
  /// fitted by the moments of the chains; another objective that refines, by stochastic gradients within a quarter of
  /// the budget.
  PosteriorFitConfig fit;
  int draws = 4000;           ///< refined draws beyond twice this number are thinned
  double error = 0.05;        ///< chains go on until twice the standard error of every mean, in sds, is below it
  int chains_per_start = 16;  ///< of the eight or more super-chains; as many chains in all start at draws of q
  ChainCoordinates coordinates = ChainCoordinates::adapted;  ///< in which the chains move
  Tolerances tolerances;                                     ///< how far q may be from the refined draws
  /// told of the fit when the searches from the first starts have ended: q is preliminary then
  std::function<void(const PosteriorFit&)> on_starts;
};

/// One value on the natural scale, by q's draws and by the refined ones. NaN where a draw's value is not finite.
struct ParameterSummary {
  std::string name;       ///< as in Posterior::names()
  double q_mean;          ///< mean under q
  double q_sd;            ///< standard deviation under q
  double mean;            ///< mean of the refined draws
  double sd;              ///< standard deviation of the refined draws
  double mcse;            ///< Monte Carlo standard error of the mean, plus its drift beyond chance
  double sd_mcse;         ///< Monte Carlo standard error of the sd
  double effective;       ///< effective number of draws for the mean
  double tail_effective;  ///< the smaller of those for the 5 % and 95 % quantiles
  double q05;             ///< 5 % quantile of the refined draws
  double q50;             ///< median of the refined draws
  double q95;             ///< 95 % quantile of the refined draws
  double is_mean;         ///< mean of importance-weighted draws of q; NaN if k-hat is 0.7 or more
  double is_sd;           ///< standard deviation of importance-weighted draws of q; NaN if k-hat is 0.7 or more
  double rhat;            ///< nested R̂ between super-chains, chance removed; NaN over several modes
};

/// A fit with its refined draws and the verdict on both.
struct CheckedFit {
  PosteriorFit fit;                          ///< the fit of q
  RefinedDraws refined;                      ///< over the coordinates e of fit.q
  Psis weights;                              ///< of refined.z0
  std::vector<double> log_p0;                ///< log p at z0, over the unconstrained z
  std::vector<double> log_q0;                ///< log q at z0, q normalised over z
  std::vector<double> log_p;                 ///< log p at refined.states
  std::vector<double> log_q;                 ///< log q at refined.states, q normalised over z
  Matrix<double> natural_q;                  ///< natural-scale values (names, n0) at z0
  Matrix<double> natural_refined;            ///< natural-scale values (names, n) at refined.states
  std::vector<ParameterSummary> parameters;  ///< as Posterior::names()
  std::size_t parameter_count = 0;           ///< how many of them are the model's parameters
  Findings findings;                         ///< what the verdict rests on
  Judgement judgement;                       ///< the verdict and its reasons
  std::int64_t gradients = 0;                ///< gradients spent in all
  bool interrupted = false;                  ///< budget.stop ended it before it was finished
  double fit_seconds = 0;                    ///< wall time of the fit of q
  double seconds = 0;                        ///< wall time in all
};

/// What is being done ("kl, 256 iterations", "refined 16 steps, nested R-hat 1.02") and the gradients spent so far.
using CheckedFitProgress = std::function<void(const std::string&, std::int64_t)>;

/// Fits q, refines its draws until they can be trusted or the budget ends, compares both, and judges. Bits depend on
/// the seed alone, unless the budget is one of seconds. Throws as fit_posterior does, with the names of coordinates,
/// and with the posterior's complaint where it is nowhere finite. budget.stop ends it soon: with the last round of the
/// chains, or with q and very short chains if there was none. Throws Stopped if the searches from the first starts
/// have not ended.
CheckedFit fit_and_check(const Posterior& posterior, const CheckedFitConfig& config,
                         const CheckedFitProgress& progress = {});

}  // namespace hone
