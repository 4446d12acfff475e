#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "hone/assess/refined_draws.hpp"
#include "hone/target/posterior.hpp"

namespace hone {

// Values on the natural scale, for models that may be slow to give them. If a point occurs again, because a chain did
// not move or was made longer, its values are copied.
class NaturalValues {
 public:
  NaturalValues(const Posterior& posterior, const std::atomic<bool>* stop) : posterior_(posterior), stop_(stop) {}

  // Of points z (D, n), one per column; NaN where the model refuses. Throws Stopped when `stop` has been true for a
  // second, unless at_any_price() was called.
  Matrix<double> of(MatrixView<const double> z);
  // The same, and remembers these points and values in place of earlier ones.
  const Matrix<double>& remembered(Matrix<double> z);
  // The same, and forgets the points and values remembered.
  Matrix<double> taken(Matrix<double> z);

  void at_any_price() { patient_ = true; }
  // How many points can be evaluated in the time that a stopped fit may still take.
  double affordable() const;

 private:
  void constrain(std::span<const double> z, std::span<double> natural);

  const Posterior& posterior_;
  const std::atomic<bool>* stop_;
  Matrix<double> z_, values_;  // remembered
  std::optional<std::chrono::steady_clock::time_point> stopped_;
  bool patient_ = false;
  double seconds_ = 0, calls_ = 0;
};

// Leaves out draws of q, and states of every chain, so that about `points` of draws, states and states before remain.
void thin_out(RefinedDraws& refined, double points);

}  // namespace hone
