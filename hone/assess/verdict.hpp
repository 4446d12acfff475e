#pragma once

#include <string>
#include <vector>

#include "hone/assess/refined_draws.hpp"

namespace hone {

/// What to use after a fit.
enum class Verdict {
  use_q,          ///< q agrees with the refined draws within the tolerances
  use_refined,    ///< the refined draws represent the posterior; q does not
  trust_neither,  ///< the chains did not arrive
};

/// "use-q", "use-refined" or "trust-neither".
std::string name_of(Verdict verdict);

/// How far q may be from the refined draws.
struct Tolerances {
  double mean = 0.1;  ///< shift of a mean, in standard deviations
  double sd = 0.07;   ///< relative error of a standard deviation
  double vcd = 0.01;  ///< VCD per dimension
};

inline constexpr int most_direction_dimensions = 300;  ///< directions of z are compared up to this dimension

/// A direction of z and how wide q is along it, relative to the refined draws.
struct Direction {
  std::vector<double> vector;  ///< of length 1, each coordinate of z in units of its refined sd
  double sd_ratio;             ///< sd of q / sd of the refined draws, corrected for the selection of extremes
};

/// How q compares with the refined draws.
struct QChecks {
  double k_hat = 0;                  ///< Pareto k of the importance weights
  double effective_draws = 0;        ///< effective number of importance-weighted draws
  double p_value = 1;                ///< of the hypothesis q = p, by a test of exchangeability
  int p_value_flips = 0;             ///< random sign flips behind the p-value
  std::vector<double> shift;         ///< per unconstrained coordinate: (mean of q − refined mean) / refined sd
  std::vector<double> sd_ratio;      ///< per unconstrained coordinate: sd of q / refined sd
  std::vector<Direction> narrowest;  ///< where q is too narrow; empty beyond most_direction_dimensions
  std::vector<Direction> widest;     ///< where q is too wide; empty beyond most_direction_dimensions
  std::vector<double> mode_mass;     ///< masses of a mixture's components by importance weights
  std::vector<double> q_weight;      ///< their weights in q
  double tail_growth = 0;            ///< what the last doubling of t added to the VCD, in standard errors
};

/// The largest disagreement between q and the refined draws on the natural scale, over the model's parameters.
struct NaturalChecks {
  double shift = 0;        ///< largest shift of a mean, in refined sds
  double shift_se = 0;     ///< its standard error
  std::string shift_name;  ///< the parameter it belongs to
  double sd_ratio = 1;     ///< sd of q / refined sd, the one farthest from 1
  double sd_ratio_se = 0;  ///< its standard error
  std::string sd_name;     ///< the parameter it belongs to
  double tail_index = 0;   ///< largest Pareto k of a tail of the refined draws: above 1 there is no mean
  std::string tail_name;   ///< the parameter it belongs to
};

/// Everything that the verdict rests on.
struct Findings {
  int dimension = 0;                          ///< D
  int starts = 0;                             ///< searches that found a start
  int left_out = 0;                           ///< starts whose approximations are far worse than q by their ELBO
  int modes = 1;                              ///< separate modes that the starts found
  bool component_per_mode = false;            ///< q is a mixture with one component per mode found
  bool fit_converged = true;                  ///< whether the fit of q converged
  std::vector<std::string> coordinate_names;  ///< of the unconstrained z, in words: "mu", "log tau"
  std::vector<std::string> chain_names;       ///< of the coordinates in which the chains moved
  ChainChecks chains;                         ///< whether the refined draws represent the posterior
  std::string sd_error_name;                  ///< the parameter that chains.sd_error belongs to
  bool capped = false;                        ///< the chains would have needed more steps than allowed
  int steps = 0;                              ///< t
  double acceptance_aim = 0.8;                ///< that the chains' step size aimed at
  std::vector<PairsAt> at;                    ///< t = 1, 2, 4, …
  std::vector<DriftAt> drifts;                ///< after each round of the chains
  Estimate vcd;                               ///< the limit of many steps, from all draws
  QChecks q;                                  ///< q against the refined draws
  NaturalChecks natural;                      ///< the same on the natural scale
};

/// A verdict with its reasons.
struct Judgement {
  Verdict verdict;                   ///< what to use
  std::vector<std::string> reasons;  ///< why, in words
  std::vector<std::string> notes;    ///< what else is worth knowing
};

/// What was refined, and is judged beside the refined draws.
enum class Subject {
  q,      ///< draws of a fitted q
  draws,  ///< draws from another program
};

/// Judges q, or the given draws, and the refined draws.
Judgement judge(const Findings& findings, const Tolerances& tolerances, Subject subject = Subject::q);

}  // namespace hone
