#pragma once

#include <functional>

#include "hone/target/target.hpp"

namespace hone {

// A target that calls `beat` before every evaluation, on the thread that evaluates. `beat` may throw Stopped, to end
// long work. Target and beat must outlive it.
class InterruptibleTarget final : public Target {
 public:
  InterruptibleTarget(const Target& target, const std::function<void()>& beat) : target_(target), beat_(beat) {}
  int dimension() const override { return target_.dimension(); }
  int good_batch() const override { return target_.good_batch(); }
  void evaluated_elsewhere(std::int64_t points) const override { target_.evaluated_elsewhere(points); }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    compute_data(z, want, value, gradient, {});
  }
  void compute_data(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                    std::span<const std::uint32_t> datum) const override {
    if (beat_) beat_();
    target_.evaluate(z, want, value, gradient, datum);
  }

 private:
  const Target& target_;
  const std::function<void()>& beat_;
};

}  // namespace hone
