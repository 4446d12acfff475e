#pragma once

#include <cstdint>
#include <memory>

#include "hone/latent/amortized_family.hpp"
#include "hone/latent/model_config.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/objective/vcd.hpp"
#include "hone/optim/optimizer.hpp"

namespace hone {

/// The control variate: one for all data, or one per datum after a shared warm-up.
enum class LatentBaseline { none, global, local };

/// The number format of the networks.
///   automatic        float32 on the cpu, tf32 on cuda
///   tf32             cuda: the operands of products are rounded to 10 bits of mantissa, sums are float32; the accept
///                    step evaluates the same function
///   bf16_trajectory  cpu: the gradients of a whole trajectory come from bf16 products, and its accept step is exact in
///                    float32. Leapfrog with any gradient is reversible and preserves volume, so the posterior stays
///                    invariant
enum class Precision { automatic, float32, float64, bf16_trajectory, tf32 };

/// How long the kernel's steps are in the dimensions of z.
///   same  as long in all of them
///   q     cpu: in proportion to q's standard deviations, root mean squares over the minibatch. The step size is then
///         that of the narrowest dimension, and others have at most `widest_step` times as much
enum class StepScale { same, q };
/// How many times as long as in the narrowest dimension a step may be.
inline constexpr double widest_step = 100;

/// The VCD as training uses it unless told otherwise: it starts as Hoffman's method, which hands over to the VCD, and
/// bounds the weight of the noisiest term.
inline constexpr VcdConfig default_training_vcd{.ramp = {.from = 500, .until = 2000}, .score_bound = 3};

/// Everything that defines the training of a model. The defaults train from any start (docs/train.md); `paper()` has
/// the paper's settings.
struct TrainConfig {
  /// The paper's settings for the VAE, with its authors' initial weights.
  static TrainConfig paper();

  ModelConfig model;  ///< the model
  /// The family of q(z | x). The cuda engine has the diagonal Gaussian alone.
  std::shared_ptr<const AmortizedFamily> family = std::make_shared<DiagonalGaussian>();
  /// The objective. `baseline` below replaces the baseline of its own.
  std::shared_ptr<const Objective> objective = std::make_shared<Vcd>(default_training_vcd);
  LatentBaseline baseline = LatentBaseline::local;  ///< the control variate
  double baseline_decay = 0.9;                      ///< γ of the control variate
  std::uint32_t shared_until = 3000;                ///< local: up to and including this iteration, all data share one C
  std::shared_ptr<const Kernel> kernel = std::make_shared<Hmc>();  ///< the MCMC kernel
  /// The authors start with a step size of 0.5 / latent.
  RefineConfig refine{.steps = 8, .adapt = Adapt::inside, .step_size = 0.05, .acceptance = 0.9};
  StepScale step_scale = StepScale::same;               ///< the kernel's steps in the dimensions of z
  int batch = 100;                                      ///< data per minibatch
  OptimizerKind optimizer = OptimizerKind::adam;        ///< RMSProp or Adam …
  std::shared_ptr<const ModelOptimizer> own_optimizer;  ///< … or one of your own, where this is not null (cpu)
  double rate_mean = 1e-3;                              ///< learning rate of q's mean network
  double rate_scale = 1e-3;                             ///< of q's standard-deviation network
  double rate_model = 1e-3;                             ///< of the decoder
  double rate_decay = 0.9;                              ///< factor on all rates …
  std::uint32_t decay_every = 15000;                    ///< … once per this many iterations
  Ramp warmup = {};                                     ///< of all rates, at the start
  Precision precision = Precision::automatic;           ///< numbers of the networks
  std::uint64_t seed = 1;                               ///< of the random numbers
};

/// The engines.
enum class EngineKind { automatic, cpu, cuda };

/// Throws KeyError if the combination is impossible on every engine.
void check(const TrainConfig& config);
/// The same for one engine.
void check(const TrainConfig& config, EngineKind engine);

}  // namespace hone
