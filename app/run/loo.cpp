#include "app/run/loo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/run/draws.hpp"
#include "app/run/draws_file.hpp"
#include "app/run/posterior_run.hpp"
#include "hone/assess/importance.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/spelling.hpp"

namespace hone {
namespace {

// Σ x and its error √(N Var x); NaN for one value.
LooDifference total_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double x : values) sum += x;
  for (const double x : values) squares += square(x - sum / n);
  return {sum, std::sqrt(n * squares / (n - 1))};
}

}  // namespace

int Loo::bad() const {
  return static_cast<int>(std::ranges::count_if(k_hat, [this](double k) { return !(k <= good_k); }));
}

Loo loo_of(MatrixView<const double> log_lik) {
  const int n = log_lik.rows(), draws = log_lik.cols();
  if (n < 2 || draws < 2) throw InputError("a comparison by LOO needs two draws of the log-likelihoods of two data");
  Loo result;
  result.good_k = std::min(0.7, 1 - 1 / std::log10(static_cast<double>(draws)));
  std::vector<double> own(static_cast<std::size_t>(draws)), ratio(own.size());
  double seen = 0;  // Σ log mean p(y_i | θ): with all data
  for (int i = 0; i < n; ++i) {
    for (int s = 0; s < draws; ++s) {
      const double value = log_lik(i, s);
      if (std::isnan(value)) throw InputError(fmt::format("the log-likelihood of datum {} is not a number", i + 1));
      own[static_cast<std::size_t>(s)] = value;
      ratio[static_cast<std::size_t>(s)] = -value;
    }
    seen += log_sum_exp(own) - std::log(static_cast<double>(draws));
    const Psis weights = smooth_weights(ratio);
    for (std::size_t s = 0; s < own.size(); ++s) own[s] += weights.log_weight[s];
    result.elpd.push_back(log_sum_exp(own));
    result.k_hat.push_back(weights.k_hat);
  }
  const LooDifference total = total_of(result.elpd);
  result.total = total.value;
  result.se = total.se;
  result.effective = seen - total.value;
  return result;
}

LooDifference difference(const Loo& best, const Loo& other) {
  std::vector<double> apart(best.elpd.size());
  for (std::size_t i = 0; i < apart.size(); ++i) apart[i] = best.elpd[i] - other.elpd[i];
  return total_of(apart);
}

Matrix<double> read_log_likelihood(const std::filesystem::path& run, const std::string& name) {
  read_fit_summary(run);  // throws if the folder is no fit
  const GivenDraws draws = read_csv_draws({run / "draws.csv"});
  std::vector<NamedVariable> found;
  std::vector<std::string> names;
  for (const NamedVariable& variable : group_names(draws.names)) {
    if (name.empty() ? !is_log_likelihood(variable.name) : variable.name != name) continue;
    names.push_back(variable.name);
    found.push_back(variable);
  }
  if (found.empty() && !name.empty())
    throw InputError(fmt::format("{}: the model has no variable '{}'", run.string(), name));
  if (found.empty())
    throw InputError(
        fmt::format("{}: the model has no log_lik; compute it in generated quantities, one value per datum, or name "
                    "another variable by --log-lik",
                    run.string()));
  if (found.size() > 1)
    throw InputError(fmt::format("{}: the model has several log-likelihoods, {}; choose one by --log-lik", run.string(),
                                 join(names)));
  const std::vector<std::size_t>& entries = found.front().entries;
  if (entries.size() < 2)
    throw InputError(fmt::format("{}: '{}' has one value; expected the log-likelihoods of at least two data",
                                 run.string(), found.front().name));
  Matrix<double> values(static_cast<int>(entries.size()), draws.values.cols());
  for (int s = 0; s < values.cols(); ++s)
    for (int i = 0; i < values.rows(); ++i)
      values(i, s) = draws.values(static_cast<int>(entries[static_cast<std::size_t>(i)]), s);
  return values;
}

}  // namespace hone
