#include "hone/engine/config.hpp"

#include <string>

#include "hone/base/error.hpp"
#include "hone/tensor/simd.hpp"

namespace hone {

Density ModelConfig::density() const {
  switch (kind) {
    case ModelKind::vae:
    case ModelKind::logistic_mf:
      return Density::bernoulli;
    case ModelKind::gaussian_mf:
      return Density::gaussian;
    case ModelKind::poisson_mf:
      return Density::poisson;
  }
  throw Error("unknown model");
}

void check(const TrainConfig& config) {
  const KernelConfig& kernel = config.kernel;
  if (config.model.kind != ModelKind::vae && !config.model.hidden.empty())
    throw KeyError("hidden", "matrix factorization has no hidden layers");
  if (config.model.kind == ModelKind::vae && config.model.hidden.empty())
    throw KeyError("hidden", "a vae needs at least one hidden layer; without any it is logistic-mf");
  if (config.batch < 1) throw KeyError("batch", "must be at least 1");
  if (kernel.kind == KernelKind::hmc && kernel.leapfrog_jitter >= kernel.leapfrog)
    throw KeyError("leapfrog_jitter", "must be below leapfrog, which is " + std::to_string(kernel.leapfrog));
  if (config.precision != Precision::bf16_trajectory) return;
  if (kernel.kind == KernelKind::random_walk)
    throw KeyError("precision", "bf16-trajectory is for kernels that use gradients, and random-walk uses none");
  try {
    kernels_of<Bf16>();
  } catch (const InputError& error) {
    throw KeyError("precision", error.what());
  }
}

void check(const TrainConfig& config, EngineKind engine) {
  check(config);
  if (engine == EngineKind::cpu && config.precision == Precision::tf32)
    throw KeyError("precision",
                   "tf32 is for the cuda engine; the cpu engine takes float32, float64 or bf16-trajectory");
  if (engine != EngineKind::cuda) return;
  if (config.kernel.kind != KernelKind::hmc)
    throw KeyError("kernel", "the cuda engine runs hmc; mala and random-walk are for the cpu engine");
  if (config.precision == Precision::float64 || config.precision == Precision::bf16_trajectory)
    throw KeyError("precision", "the cuda engine takes tf32 or float32; the others are for the cpu engine");
}

}  // namespace hone
