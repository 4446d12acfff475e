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
  if (config.kernel.kind == KernelKind::hmc && config.kernel.leapfrog_jitter >= config.kernel.leapfrog)
    throw InputError("leapfrog_jitter: must be below leapfrog");
  if (config.objective.baseline == BaselineKind::leave_one_out)
    throw InputError("baseline: leave-one-out needs several draws of one q, and a datum has one");
}

}  // namespace hone
