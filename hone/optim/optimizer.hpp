#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

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

/// A weight matrix or a bias of a model's networks, in one iteration of training.
struct TensorStep {
  const std::string& name;           ///< as in checkpoints, "decoder.weight[0]" for example
  int rows;                          ///< units below; 1 for a bias
  int cols;                          ///< units
  double rate;                       ///< its learning rate in this iteration, decayed
  std::span<const double> gradient;  ///< the direction of ascent (rows, cols), row by row; a sum over the minibatch
  std::span<double> theta;           ///< the parameters, which are to move
};

/// Moves the parameters of a latent-variable model and of its q: the optimizer that a caller brings to training. Every
/// run works on a clone of it.
class ModelOptimizer {
 public:
  virtual ~ModelOptimizer() = default;
  /// The same optimizer, which has seen nothing yet.
  virtual std::unique_ptr<ModelOptimizer> clone() const = 0;
  /// Names what it remembers in checkpoints, so that a state continues with the optimizer that it was trained with.
  virtual std::string name() const = 0;

  /// Moves all parameters once; iterations count from 1. Called by one thread. On several ranks, each makes the same
  /// step, so it may depend on nothing else.
  virtual void step(std::span<const TensorStep> tensors, std::uint32_t iteration) = 0;

  /// What is called for every array of a state. Restoring changes `values`, and its size.
  using Visit = std::function<void(const std::string& name, std::vector<double>& values)>;
  /// Calls `visit` for everything that step() remembers: always the same names, with empty arrays before the first
  /// step.
  virtual void visit_state(const Visit&) {}
};

}  // namespace hone
