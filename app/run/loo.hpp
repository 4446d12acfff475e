#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hone/tensor/matrix.hpp"

namespace hone {

// How well a model predicts each datum that is left out, by Pareto smoothed importance sampling (Vehtari, Gelman
// and Gabry 2017) from draws of the posterior given all of them.
struct Loo {
  std::vector<double> elpd;   // per datum: log p(y_i | y without i)
  std::vector<double> k_hat;  // per datum: above good_k, elpd_i is not known
  double total = 0;           // Σ elpd
  double se = 0;              // of the total, from the spread over data
  double effective = 0;       // p_loo: effective number of parameters
  double good_k = 0.7;        // min(0.7, 1 − 1/log₁₀ S)
  int bad() const;            // data whose k-hat is above it
};

// `log_lik` (N, S): of datum i under draw s. Throws InputError where a value is not a number.
Loo loo_of(MatrixView<const double> log_lik);

// The total of `best` minus that of `other`, with an error from the differences per datum.
struct LooDifference {
  double value, se;
};
LooDifference difference(const Loo& best, const Loo& other);

// The log-likelihoods in the folder of a fit: of the variable `name`, or of the only one there is. Throws InputError
// where there is none or several.
Matrix<double> read_log_likelihood(const std::filesystem::path& run, const std::string& name);

}  // namespace hone
