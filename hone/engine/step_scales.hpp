#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hone/target/target.hpp"

namespace hone {

// The length of the kernel's steps in each dimension, from q's standard deviations (D, n): their root mean square over
// the minibatch, divided by the smallest of these, at most widest_step. So a step size that suits these steps suits
// steps that are as long in all dimensions, too: the narrowest one limits both.
std::vector<double> step_scales(MatrixView<const double> sd);

// A target in the coordinates u = z / s. Target and scales must outlive it.
class ScaledTarget final : public Target {
 public:
  ScaledTarget(const Target& target, std::span<const double> scales) : target_(target), scales_(scales) {}
  int dimension() const override { return target_.dimension(); }
  int good_batch() const override { return target_.good_batch(); }

  // Points and gradients (D, n): z → u, ∇_z → ∇_u, and back.
  void to_scaled(MatrixView<double> z, MatrixView<double> gradient) const;
  void from_scaled(MatrixView<double> u, MatrixView<double> gradient) const;

 protected:
  void compute(MatrixView<const double> u, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    compute_data(u, want, value, gradient, {});
  }
  void compute_data(MatrixView<const double> u, Want want, std::span<double> value, MatrixView<double> gradient,
                    std::span<const std::uint32_t> datum) const override;

 private:
  const Target& target_;
  std::span<const double> scales_;
};

}  // namespace hone
