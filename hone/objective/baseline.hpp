#pragma once

#include <memory>
#include <span>

#include "hone/family/family.hpp"

namespace hone {

/// The control variates that the library has.
enum class BaselineKind {
  none,
  global,         ///< C ← γ C + (1 − γ) Σ weight · value, starting at 0: the paper's control variate
  leave_one_out,  ///< C_i from the other draws of the same iteration; needs two draws of every component
};

/// The control variate C of eq. gradient_term2. A baseline may not depend on the draw that it is subtracted for, and
/// its mean must be the same for the draws of all components (else the gradient of a mixture's weights is biased).
class Baseline {
 public:
  virtual ~Baseline() = default;

  /// centred_i = value_i − C_i for the whole batch, and only then learns from the values.
  virtual void centre(const Draws& draws, std::span<const double> value, std::span<double> centred) = 0;

  virtual double value() const { return 0; }  ///< C, where it is one number
};

/// Draws of a component that a baseline of this kind needs.
constexpr int least_draws_of(BaselineKind kind) { return kind == BaselineKind::leave_one_out ? 2 : 1; }

/// Makes a baseline of a kind; `decay` is γ of the global one.
std::unique_ptr<Baseline> make_baseline(BaselineKind kind, double decay);

}  // namespace hone
