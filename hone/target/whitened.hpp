#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "hone/base/error.hpp"
#include "hone/target/target.hpp"
#include "hone/target/whitening.hpp"

namespace hone {

// The same posterior in the coordinates e: its log density at e is that at z = m + L e, without the constant log |det
// L|. HMC here with unit masses is HMC over z with the metric (L Lᵀ)⁻¹.
class WhitenedTarget final : public Target {
 public:
  WhitenedTarget(const Target& target, const Whitening& whitening) : target_(target), whitening_(whitening) {}
  int dimension() const override { return target_.dimension(); }
  int good_batch() const override { return target_.good_batch(); }

 protected:
  void compute(MatrixView<const double> e, Want want, std::span<double> value,
               MatrixView<double> gradient) const override;

 private:
  const Target& target_;
  const Whitening& whitening_;
};

// Counts the points at which a target is evaluated.
class CountedTarget final : public Target {
 public:
  explicit CountedTarget(const Target& target) : target_(target) {}
  // With `stop`, evaluations throw Stopped as long as it is true and `heed` allows it.
  CountedTarget(const Target& target, const std::atomic<bool>* stop) : target_(target), stop_(stop) {}
  void heed(bool on) { heeds_ = on; }
  int dimension() const override { return target_.dimension(); }
  int good_batch() const override { return target_.good_batch(); }
  std::int64_t count() const { return count_.load(std::memory_order_relaxed); }
  void evaluated_elsewhere(std::int64_t points) const override {
    count_.fetch_add(points, std::memory_order_relaxed);
    target_.evaluated_elsewhere(points);
  }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    if (heeds_ && stop_ && stop_->load(std::memory_order_relaxed)) throw Stopped();
    count_.fetch_add(z.cols(), std::memory_order_relaxed);
    target_.evaluate(z, want, value, gradient);
  }

 private:
  const Target& target_;
  const std::atomic<bool>* stop_ = nullptr;
  bool heeds_ = false;
  mutable std::atomic<std::int64_t> count_ = 0;
};

}  // namespace hone
