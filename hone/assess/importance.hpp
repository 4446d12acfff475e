#pragma once

#include <span>
#include <vector>

namespace hone {

/// A log-likelihood estimated by importance sampling.
struct ImportanceEstimate {
  double log_likelihood = 0;     ///< log mean(w)
  double effective_samples = 0;  ///< (Σ w)² / Σ w²; 0 if no draw has weight
};

/// The estimate from the log weights log p(x, z) − log r(z) of draws from a proposal r.
ImportanceEstimate importance_estimate(std::span<const double> log_weight);

/// The variance of mean(w) / E[w], estimated from the spread of `samples` weights: to first order that of log mean(w).
/// NaN if there is only one weight or no draw has weight.
double relative_variance(const ImportanceEstimate& estimate, int samples);

/// Pareto smoothed importance weights (Vehtari et al. 2024).
struct Psis {
  double k_hat;                    ///< shape of the tail; above 0.7 the weights are of no use; ∞: cannot be judged
  std::vector<double> log_weight;  ///< smoothed and normalised: Σ exp = 1; −∞ stays −∞
  double effective_draws;          ///< 1 / Σ weight²
};

/// Smooths the weights of draws from q, given log p(x, z) − log q(z) up to a constant. −∞ is allowed.
Psis smooth_weights(std::span<const double> log_ratio);

inline constexpr double usable_k_hat = 0.7;      ///< at larger ones importance weights are of no use
inline constexpr double most_mass_apart = 0.05;  ///< a mode's mass may differ from its weight in q by this

/// Masses of a mixture's components, one per mode, by the importance weights of its draws.
struct ModeMasses {
  std::vector<double> mass;    ///< by importance weights
  std::vector<double> weight;  ///< share of the draws
  double k_hat = 0;            ///< of the importance weights

  /// The largest difference between the two.
  double apart() const;
  /// Whether the masses can be trusted and agree with the shares of the draws.
  bool known() const { return k_hat < usable_k_hat && apart() <= most_mass_apart; }
};

/// The masses of all components; `component` holds the number of the component of each draw.
ModeMasses mode_masses(const Psis& weights, std::span<const int> component, int components);

}  // namespace hone
