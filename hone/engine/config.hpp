#pragma once

#include <cstdint>
#include <memory>

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

enum class Gradients;  ///< latent/decoder.hpp
Gradients trajectory_gradients(Precision precision);

/// Everything that defines the training of a model. The defaults are the paper's for the VAE.
struct TrainConfig {
  ModelConfig model;                                                     ///< the model
  std::shared_ptr<const Objective> objective = std::make_shared<Vcd>();  ///< its own baseline is not used
  LatentBaseline baseline = LatentBaseline::local;                       ///< the control variate
  double baseline_decay = 0.9;                                           ///< γ of the control variate
  std::uint32_t shared_until = 3000;  ///< local: up to and including this iteration, all data share one C
  std::shared_ptr<const Kernel> kernel = std::make_shared<Hmc>();  ///< the MCMC kernel
  /// The authors start with a step size of 0.5 / latent.
  RefineConfig refine{.steps = 8, .adapt = Adapt::inside, .step_size = 0.05, .acceptance = 0.9};
  int batch = 100;                                   ///< data per minibatch
  OptimizerKind optimizer = OptimizerKind::rmsprop;  ///< RMSProp or Adam
  double rate_mean = 5e-4;                           ///< learning rate of q's mean network
  double rate_scale = 2.5e-4;                        ///< of q's standard-deviation network
  double rate_model = 5e-4;                          ///< of the decoder
  double rate_decay = 0.9;                           ///< factor on all rates …
  std::uint32_t decay_every = 15000;                 ///< … once per this many iterations
  Precision precision = Precision::automatic;        ///< numbers of the networks
  std::uint64_t seed = 1;                            ///< of the random numbers
};

/// The engines.
enum class EngineKind { automatic, cpu, cuda };

/// Throws KeyError if the combination is impossible on every engine, or on the one named.
void check(const TrainConfig& config);
/// Throws if the configuration is impossible.
void check(const TrainConfig& config, EngineKind engine);

}  // namespace hone
