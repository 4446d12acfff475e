#pragma once

#include <cstdint>
#include <span>

#include "hone/base/want.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

/// The unnormalised log density log p(x, z) of z for fixed x. Safe to call from several threads.
class Target {
 public:
  virtual ~Target() = default;
  /// D, the length of z.
  virtual int dimension() const = 0;
  /// The least number of points per call, if the caller has that many: more than 1 if a call costs much by itself.
  virtual int good_batch() const { return 1; }

  /// Writes the value of every column of z (D, n) to value[n] and its gradient to gradient (D, n), or what `want` asks
  /// for. The other may be empty and is left alone. A value is finite or −∞: it is −∞ outside the support and
  /// where value or gradient is not finite. With Want::gradient alone a gradient may be non-finite.
  ///
  /// A target with one posterior per datum takes column c as a point of the posterior of datum[c], or of datum c if
  /// `datum` is empty. Other targets ignore `datum`.
  void evaluate(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                std::span<const std::uint32_t> datum = {}) const;

  /// Called with the number of points that other processes evaluated for the caller: for targets that count them.
  virtual void evaluated_elsewhere(std::int64_t /*points*/) const {}

 protected:
  /// What a target implements: the same as evaluate, but any non-finite value is allowed. Exceptions are not caught
  /// here: a target whose model may throw at a point, such as DensityTarget, turns that into −∞ itself.
  virtual void compute(MatrixView<const double> z, Want want, std::span<double> value,
                       MatrixView<double> gradient) const = 0;

  /// What evaluate calls. Targets with one posterior per datum override it; by default it calls compute.
  virtual void compute_data(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                            std::span<const std::uint32_t> datum) const;
};

}  // namespace hone
