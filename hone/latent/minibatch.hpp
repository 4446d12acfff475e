#pragma once

#include <math.h>

#include <cstdint>
#include <span>
#include <vector>

#include "hone/tensor/batch.hpp"
#include "hone/tensor/layer.hpp"

namespace hone {

// Data in the layout of the matrix products: one datum per column, expanded once before the chains move.
template <class Real>
class Minibatch {
 public:
  Minibatch(Density density, int pixels, int columns)
      : density_(density), pixels_(pixels, columns), constant_(columns) {}

  int pixels() const { return pixels_.rows(); }
  int count() const { return pixels_.cols(); }
  BatchView<const Real> view() const { return pixels_.view(); }

  // The part of log p(x | z) that does not depend on z: − Σ log x! for a Poisson, otherwise 0
  double constant(std::uint32_t column) const { return constant_[column]; }

  template <class T>
  void set(int column, std::span<const T> datum) {
    for (std::size_t i = 0; i < datum.size(); ++i) pixels_(static_cast<int>(i), column) = static_cast<Real>(datum[i]);
    constant_[column] = 0;
    if (density_ != Density::poisson) return;
    int sign = 0;  // lgamma would write a global variable
    for (const T x : datum) constant_[column] -= ::lgamma_r(static_cast<double>(x) + 1, &sign);
  }

 private:
  Density density_;
  Batch<Real> pixels_;
  std::vector<double> constant_;
};

}  // namespace hone
