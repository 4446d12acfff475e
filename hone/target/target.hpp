#pragma once

#include <cstdint>
#include <span>

#include "hone/tensor/matrix.hpp"

namespace hone {

// What a caller needs to know at a point. The inside of a leapfrog trajectory needs gradients only.
enum class Want { value, gradient, both };

constexpr bool wants_value(Want want) { return want != Want::gradient; }
constexpr bool wants_gradient(Want want) { return want != Want::value; }

// The unnormalised log density log p(x, z) of z for fixed x. Const and safe to call from several threads.
class Target {
 public:
  virtual ~Target() = default;
  virtual int dimension() const = 0;

  // For every column of z (D, n): its value in value[n] and its gradient in gradient (D, n), as far as wanted.
  // What is not wanted may be empty and is left alone. A value is finite or −∞; it is −∞ outside the support and
  // where value or gradient is not finite. With Want::gradient alone a gradient may be non-finite.
  // A target that has a posterior for every datum takes column c as a point of that of datum[c], or of c where no data
  // are named; other targets do not look at datum.
  void evaluate(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                std::span<const std::uint32_t> datum = {}) const;

 protected:
  // The same, but values may come out in any non-finite form. An exception is not caught here: a target whose
  // model may throw at a point (LogDensity) makes that −∞ itself.
  virtual void compute(MatrixView<const double> z, Want want, std::span<double> value,
                       MatrixView<double> gradient) const = 0;

  // What evaluate calls; to be overridden by targets that look at datum.
  virtual void compute_data(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                            std::span<const std::uint32_t> datum) const;
};

}  // namespace hone
