#include "hone/engine/config.hpp"

#include "hone/base/error.hpp"

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
  if (config.model.kind != ModelKind::vae && !config.model.hidden.empty())
    throw InputError("hidden: matrix factorization has no hidden layers");
  if (config.model.kind == ModelKind::vae && config.model.hidden.empty())
    throw InputError("hidden: a vae needs at least one hidden layer; without any it is logistic-mf");
  if (config.batch < 1) throw InputError("batch: must be at least 1");
  if (config.precision == Precision::bf16_trajectory && config.kernel.kind == KernelKind::random_walk)
    throw InputError("precision: bf16-trajectory is for kernels that use gradients, and random-walk uses none");
  if (config.kernel.kind == KernelKind::hmc && config.kernel.leapfrog_jitter >= config.kernel.leapfrog)
    throw InputError("leapfrog_jitter: must be below leapfrog");
}

}  // namespace hone
