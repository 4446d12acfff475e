#include "hone/assess/importance.hpp"

#include <cmath>

#include "hone/base/scalar.hpp"

namespace hone {

ImportanceEstimate importance_estimate(std::span<const double> log_weight) {
  const double total = log_sum_exp(log_weight);
  if (total == -infinity) return {total, 0};
  double squares = 0;
  for (const double w : log_weight) squares += std::exp(2 * (w - total));
  return {total - std::log(static_cast<double>(log_weight.size())), 1 / squares};
}

// Σ (w − w̄)² / (S (S − 1) w̄²) = (S / ESS − 1) / (S − 1)
double relative_variance(const ImportanceEstimate& estimate, int samples) {
  if (samples < 2 || estimate.effective_samples == 0) return std::nan("");
  return std::max(0.0, samples / estimate.effective_samples - 1) / (samples - 1);
}

}  // namespace hone
