#pragma once

#include <math.h>

#include <cstdint>
#include <span>
#include <vector>

#include "hone/latent/likelihoods.hpp"
#include "hone/latent/model_config.hpp"
#include "hone/tensor/batch.hpp"
#include "hone/tensor/layer.hpp"

namespace hone {

// Data in the layout of the matrix products: one datum per column, expanded once before the chains move. With
// Missing::ignored, a NaN is a missing value: it becomes 0, and has no part in the likelihood.
template <class Real>
class Minibatch {
 public:
  Minibatch(Density density, int pixels, int columns, Missing missing = Missing::refused)
      : counts_(facts_of(density).counts), pixels_(pixels, columns), constant_(columns) {
    if (missing == Missing::ignored) observed_ = Batch<Real>(pixels, columns);
  }

  int pixels() const { return pixels_.rows(); }
  int count() const { return pixels_.cols(); }
  BatchView<const Real> view() const { return pixels_.view(); }
  // Laid out as the data: 1, or 0 where a value is missing. Null if none may be.
  const Real* observed() const { return observed_.cols() > 0 ? observed_.view().data() : nullptr; }
  bool observed(int pixel, int column) const { return observed_.cols() == 0 || observed_(pixel, column) != 0; }

  // The part of log p(x | z) that does not depend on z: − Σ log x! of counts, otherwise 0
  double constant(std::uint32_t column) const { return constant_[column]; }

  template <class T>
  void set(int column, std::span<const T> datum) {
    for (std::size_t i = 0; i < datum.size(); ++i) pixels_(static_cast<int>(i), column) = static_cast<Real>(datum[i]);
    if (observed_.cols() > 0) leave_out(column, datum);
    constant_[column] = 0;
    if (!counts_) return;
    int sign = 0;  // lgamma would write a global variable
    for (const T x : datum)
      if (x == x) constant_[column] -= ::lgamma_r(static_cast<double>(x) + 1, &sign);
  }

 private:
  template <class T>
  void leave_out(int column, std::span<const T> datum) {
    for (std::size_t i = 0; i < datum.size(); ++i) {
      const int pixel = static_cast<int>(i);
      const bool missing = datum[i] != datum[i];
      observed_(pixel, column) = missing ? Real(0) : Real(1);
      if (missing) pixels_(pixel, column) = 0;
    }
  }

  bool counts_;
  Batch<Real> pixels_;
  Batch<Real> observed_ = Batch<Real>(0, 0);  // empty: nothing is missing
  std::vector<double> constant_;
};

}  // namespace hone
