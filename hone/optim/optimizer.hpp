#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "hone/family/family.hpp"

namespace hone {

enum class OptimizerKind { rmsprop, adam };

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::rmsprop;
  double rate_location = 0.01;
  double rate_scale = 0.005;
  double rate_weight = 0.001;
  double decay = 0.9;               // every rate is multiplied by this …
  std::uint32_t decay_every = 2000;  // … after so many iterations; 0: never
  std::uint32_t weights_from = 0;   // weights stand still up to and including this iteration
};

// The factor by which rates have decayed in an iteration (counted from 1).
double decay_factor(double decay, std::uint32_t every, std::uint32_t iteration);

// Element by element updates of the paper's RMSProp and of Adam; both ascend.
//   RMSProp: G ← 0.9 G + 0.1 g² (at the first iteration G = g²); θ ← θ + η g / (1 + √G)
inline double rmsprop_step(double rate, double gradient, bool first, double& g) {
  const double squared = gradient * gradient;
  g = first ? squared : 0.9 * g + 0.1 * squared;
  return rate * gradient / (1 + std::sqrt(g));
}
inline double adam_step(double rate, double gradient, std::uint32_t iteration, double& first, double& second) {
  first = 0.9 * first + 0.1 * gradient;
  second = 0.999 * second + 0.001 * gradient * gradient;
  const double mean = first / (1 - std::pow(0.9, iteration));
  const double square = second / (1 - std::pow(0.999, iteration));
  return rate * mean / (std::sqrt(square) + 1e-8);
}

// Moves a family's parameters along a gradient, with one learning rate a role.
class Optimizer {
 public:
  Optimizer(const OptimizerConfig& config, const Family& family);
  void step(Family& family, std::span<const double> ascent, std::uint32_t iteration);

 private:
  double rate(Role role) const;

  OptimizerConfig config_;
  std::vector<double> first_, second_;  // Adam's moments; RMSProp's G is second_
};

}  // namespace hone
