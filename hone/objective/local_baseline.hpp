#pragma once

#include <span>
#include <vector>

#include "hone/objective/baseline.hpp"

namespace hone {

// One control variate C_n per datum, for minibatches with one draw per datum. Up to and including iteration
// `shared_until` all are one and learn from the minibatch's mean; afterwards each learns from its own datum alone.
class LocalBaseline final : public Baseline {
 public:
  LocalBaseline(int data, double decay, std::uint32_t shared_until);

  // Which data the draws of the next batch belong to. One that comes twice is read for both, then learns from both.
  void select(std::span<const int> data, std::uint32_t iteration);
  void centre(const Draws& draws, std::span<const double> value, std::span<double> centred) override;

  std::span<double> values() { return values_; }  // C_n, for checkpoints
  std::span<const double> values() const { return values_; }

 private:
  double decay_;
  std::uint32_t shared_until_;
  std::vector<double> values_;
  std::span<const int> data_;
  bool shared_ = true;
};

}  // namespace hone
