#pragma once

#include <span>

namespace hone {

struct ImportanceEstimate {
  double log_likelihood = 0;
  double effective_samples = 0;  // (Σ w)² / Σ w²; 0 where no draw has weight
};

// log weights log p(x, z) − log r(z) of S draws → the estimate; double, log-sum-exp.
ImportanceEstimate importance_estimate(std::span<const double> log_weight);

// The variance of mean(w) / E[w], estimated from the spread of S weights: to first order that of log mean(w). NaN where
// S is 1 or no draw has weight.
double relative_variance(const ImportanceEstimate& estimate, int samples);

}  // namespace hone
