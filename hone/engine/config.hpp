#pragma once

#include <cstdint>
#include <vector>

#include "hone/mcmc/refine.hpp"
#include "hone/objective/objective.hpp"
#include "hone/optim/optimizer.hpp"
#include "hone/tensor/layer.hpp"

namespace hone {

// The control variate: one for all data, or one a datum after a shared warm-up.
enum class LatentBaseline { none, global, local };

enum class ModelKind { vae, logistic_mf, gaussian_mf, poisson_mf };

// Numbers of the networks. automatic: float32 on the cpu, tf32 on cuda: products whose operands are rounded to 10 bits
// of mantissa, sums in float32; the accept step then evaluates that same function. With bf16_trajectory (cpu),
// gradients inside HMC come from bf16 products, all of a trajectory from the same function, while its accept step is
// exact in float32: leapfrog with any gradient is reversible and keeps volume, so the posterior is still left
// invariant.
enum class Precision { automatic, float32, float64, bf16_trajectory, tf32 };

// A latent-variable model with its amortized q. Defaults are the paper's for the VAE.
struct ModelConfig {
  ModelKind kind = ModelKind::vae;
  int latent = 10;
  std::vector<int> hidden = {200, 200};          // of the decoder; none for matrix factorization
  std::vector<int> encoder_hidden = {200, 200};  // of both networks of q
  Activation activation = Activation::relu;

  Density density() const;
};

struct TrainConfig {
  ModelConfig model;
  ObjectiveConfig objective;  // its own baseline is not used
  LatentBaseline baseline = LatentBaseline::local;
  std::uint32_t shared_until = 3000;  // local: iterations with one C for all data
  KernelConfig kernel;
  RefineConfig refine{8, Adapt::inside, 0.05, 0.9, -1};  // the authors' step size at the start is 0.5 / latent
  int batch = 100;
  OptimizerKind optimizer = OptimizerKind::rmsprop;
  double rate_mean = 5e-4;     // of q's mean network
  double rate_scale = 2.5e-4;  // of q's standard-deviation network
  double rate_model = 5e-4;    // of the decoder
  double rate_decay = 0.9;
  std::uint32_t decay_every = 15000;
  Precision precision = Precision::automatic;
  std::uint64_t seed = 1;
};

enum class EngineKind { automatic, cpu, cuda };

// Throws KeyError where the combination is impossible, for any engine or for the one named.
void check(const TrainConfig& config);
void check(const TrainConfig& config, EngineKind engine);

}  // namespace hone
