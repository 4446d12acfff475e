#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace hone {

// ArviZ's groups of a fit's variables. Variables that are in none of these are in `posterior` or `constant_data`.
struct FitGroups {
  std::vector<std::string> log_likelihood;        // variables of the model
  std::vector<std::string> posterior_predictive;  // variables of the model
  std::vector<std::string> observed_data;         // variables of the data
  std::vector<std::string> integers;              // of the model and of the data, where the program declares them int
};

// log_lik, loglik, log_likelihood, alone or as the first or last word of a name: log_lik_y, y_log_lik
bool is_log_likelihood(const std::string& variable);

// Of the values of a model, in Stan's CSV form, a prediction is X_rep, X_pred or X_sim for any X, and X_hat or X_tilde
// where X is a variable of the data. A variable of the data is observed if it has a prediction, if its name is y, or if
// the Stan program (`model`, where it is one) gives it a distribution: left of ~, or first in a function that ends in
// _lpdf, _lpmf, _lupdf or _lupmf.
FitGroups fit_groups(std::span<const std::string> names, std::span<const std::string> data,
                     const std::filesystem::path& model);

}  // namespace hone
