#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/run/posterior_run.hpp"
#include "hone/assess/verdict.hpp"
#include "hone/target/posterior.hpp"

namespace hone {

// The scale that draws are on.
enum class Scale { natural, unconstrained };

// Draws from another tool.
struct GivenDraws {
  std::vector<std::string> names;  // in Stan's CSV form; empty: the columns are in the model's own order
  Matrix<double> values;           // (names, n): one draw per column
  std::vector<double> log_q;  // log density that they were drawn from, unconstrained, except for a constant; or empty
};

// The draws over the model's unconstrained coordinates (D, n). Ignores names that are not the model's. Throws
// InputError, with `what` ("draws", a file name) before it.
Matrix<double> coordinates_of(const Posterior& posterior, const GivenDraws& draws, Scale scale,
                              const std::string& what);

// A number on the natural scale, by the given draws and by the refined ones.
struct OpinionRow {
  std::string name;
  double given_mean, given_sd;  // NaN where the model cannot write a draw
  double mean, sd, mcse;        // of the refined draws
  double q05, q50, q95;         // quantiles of the refined draws
  double effective, rhat;       // effective number of refined draws for the mean; nested R-hat
};

// The result of refining given draws.
struct SecondOpinion {
  Judgement judgement;              // use_q: the draws can be used
  Findings findings;                // k_hat is NaN if it is not known; `at` is empty if the VCD is not
  std::vector<OpinionRow> rows;     // as Posterior::names()
  std::size_t parameter_count = 0;  // how many of them are the model's parameters
  int started = 0;                  // of the given draws, how many began a chain
  Matrix<double> z;  // refined draws (D, n), as many as were checked if there are, over the unconstrained coordinates
  std::vector<double> log_p;   // log p there
  Matrix<double> natural;      // their values (names, n) on the natural scale
  std::int64_t outside = 0;    // draws at which the density is zero or not finite
  std::int64_t gradients = 0;  // spent
};

std::string verdict_name(Verdict verdict);  // "use-draws", "use-refined" or "trust-neither"

// {"verdict", "reasons", "notes", "parameters", "checks"}
std::string opinion_json(const SecondOpinion& opinion, const Tolerances& tolerances);

// The settings of a second opinion: steps, budget, tolerances, seed, threads.
Settings opinion_settings(PosteriorRunConfig& config);

inline constexpr int most_checked = 4000;  // draws; of more draws, every second, third or … is used
inline constexpr int least_checked = 100;

struct OpinionWatch {
  std::function<bool()> stopped;                              // true: end with the result so far; may be empty
  std::function<void(const std::string&, std::int64_t)> say;  // what is being done, gradients so far; may be empty
};

// Starts as many chains as a fit does, from draws spread evenly over z (D, n) and from a few half as far out again,
// runs them until they have forgotten their starts, and compares all draws with all states after the burn-in of the
// chains, on the natural scale and on the unconstrained one. If the draws are from the posterior, both have the same
// moments, so the verdict allows for the tolerances and twice the standard errors that these numbers of draws leave.
// `log_q` is as in GivenDraws: with it there is a k-hat, and the VCD where it is the log density of a Gaussian. Bits
// depend on the seed alone, unless the budget is one of seconds. Throws InputError for draws that cannot be judged.
SecondOpinion second_opinion(const Posterior& posterior, const Matrix<double>& z, const std::vector<double>& log_q,
                             const CheckedFitConfig& config, const OpinionWatch& watch);

}  // namespace hone
