#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "hone/family/family.hpp"

namespace hone {

/// The optimizers that the library has.
enum class OptimizerKind {
  rmsprop,  ///< the paper's: θ ← θ + η g / (1 + √G), G a running mean of g²
  adam,     ///< Kingma and Ba (2015)
};

/// How a positive parameter moves.
enum class PositiveSteps {
  linear,       ///< like any other parameter
  logarithmic,  ///< by its logarithm: it stays positive, and steps are relative
};

/// Learning rates and their decay.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::rmsprop;     ///< which optimizer
  double rate_location = 0.01;                     ///< learning rate of parameters with Role::location
  double rate_scale = 0.005;                       ///< of Role::scale
  double rate_weight = 0.001;                      ///< of Role::weight
  double decay = 0.9;                              ///< every rate is multiplied by this …
  std::uint32_t decay_every = 2000;                ///< … each time this many iterations have passed; 0: never
  PositiveSteps positive = PositiveSteps::linear;  ///< how positive parameters move
  std::uint32_t weights_from = 0;                  ///< weights stay fixed up to and including this iteration
};

/// Moves a family's parameters along a gradient. It may keep moments of past gradients, so each fit has its own.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Moves θ one step in the direction `ascent`, a gradient with respect to family.parameters(), and projects it back
  /// into its domain. Iterations count from 1.
  virtual void step(Family& family, std::span<const double> ascent, std::uint32_t iteration) = 0;
};

/// The optimizer that `config` names, for a family with as many parameters as this one. Throws InputError if a rate or
/// the decay is impossible.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Family& family);

}  // namespace hone
