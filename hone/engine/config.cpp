#include "hone/engine/config.hpp"

#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/base/given.hpp"
#include "hone/latent/decoder.hpp"
#include "hone/latent/likelihoods.hpp"
#include "hone/tensor/simd.hpp"

namespace hone {
namespace {

// The engines make one draw per datum. They also replace the objective's baselines, so those do not count.
void check_draws(const Objective& given_objective) {
  const std::unique_ptr<Objective> objective = given_objective.clone();
  objective->use_baselines([](Term) { return make_baseline(BaselineKind::none, 0); });
  if (objective->least_draws() > 1)
    throw KeyError("objective", detail::format("needs at least {} draws per datum, and the engines make one",
                                               objective->least_draws()));
}

}  // namespace

TrainConfig TrainConfig::paper() {
  TrainConfig config;
  config.model.initial = InitialWeights::paper;
  config.objective = std::make_shared<Vcd>();
  config.optimizer = OptimizerKind::rmsprop;
  config.rate_mean = 5e-4;
  config.rate_scale = 2.5e-4;
  config.rate_model = 5e-4;
  return config;
}

void check(const TrainConfig& config) {
  const Kernel& kernel = given(config.kernel, "kernel");
  check_draws(given(config.objective, "objective"));
  check(config.model);
  if (config.batch < 1) throw KeyError("batch", "must be at least 1");
  if (config.precision != Precision::bf16_trajectory) return;
  if (!facts_of(config.model.density()).fused)
    throw KeyError("precision", "bf16-trajectory goes with the likelihoods bernoulli, gaussian and poisson");
  if (!config.model.channels.empty()) throw KeyError("precision", "bf16-trajectory does not go with channels");
  if (!wants_gradient(kernel.wants()))
    throw KeyError("precision", "bf16-trajectory is for kernels that use gradients, and this one uses none");
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
  const HmcConfig* hmc = config.kernel->as_hmc();
  if (!hmc || hmc->step_sizes != StepSizes::fixed)
    throw KeyError("kernel", "the cuda engine runs hmc with one step size; other kernels are for the cpu engine");
  if (config.step_scale != StepScale::same)
    throw KeyError("step_scale", "the cuda engine takes the same step in all dimensions; q is for the cpu engine");
  if (config.model.missing == Missing::ignored)
    throw KeyError("missing",
                   "the cuda engine takes complete data only; data with missing values are for the cpu engine");
  if (!config.objective->terms())
    throw KeyError("objective",
                   "the cuda engine runs kl, hoffman, vcd and li2017; other objectives are for the cpu engine");
  if (config.precision == Precision::float64 || config.precision == Precision::bf16_trajectory)
    throw KeyError("precision", "the cuda engine takes tf32 or float32; the others are for the cpu engine");
}

}  // namespace hone
