#pragma once

#include <span>
#include <vector>

namespace hone {

// A generalized Pareto distribution of exceedances over 0: P(X > x) = (1 + k x / σ)^(−1/k).
struct Pareto {
  double k;      // shape; moments below 1/k exist
  double sigma;  // scale
};

// The fit of Zhang and Stephens (2009) to positive values in ascending order, with the weak prior of Vehtari et al.
// (2024) that draws k towards ½ where values are few.
Pareto fit_pareto(std::span<const double> ascending);

// Pareto smoothed importance sampling (Vehtari et al. 2024).
struct Psis {
  double k_hat;  // above 0.7: weights of too heavy a tail to be of use; ∞ where they cannot be judged
  std::vector<double> log_weight;  // smoothed and normalised: Σ exp = 1; −∞ stays −∞
  double effective_draws;          // 1 / Σ weight²
};

// From log p(x, z) − log q(z) at draws of q, up to a constant; −∞ is allowed.
Psis smooth_weights(std::span<const double> log_ratio);

}  // namespace hone
