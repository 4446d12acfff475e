#pragma once

#include <span>
#include <vector>

namespace hone {

// A generalized Pareto distribution of exceedances over 0: P(X > x) = (1 + k x / σ)^(−1/k).
struct Pareto {
  double k;      // shape; moments below 1/k exist
  double sigma;  // scale
};

// Fits positive values in ascending order by the method of Zhang and Stephens (2009), with the weak prior of Vehtari et
// al. (2024), which pulls k towards ½ if there are few values.
Pareto fit_pareto(std::span<const double> ascending);

// The larger Pareto k of the two tails of the values; tails are what lies beyond 3 √n values. 0 where they are too few.
// If it is below `least`, the result is any value below `least`: that is found sooner.
double tail_index(std::vector<double> values, double least = 0);

}  // namespace hone
