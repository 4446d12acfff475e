#include "hone/engine/config.hpp"

#include <algorithm>
#include <cctype>

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

void check_family(const AmortizedFamily& family, int latent) {
  const std::string name = family.name();
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; };
  if (name.empty() || !std::ranges::all_of(name, fits) || name == "mean" || name == "decoder" || name == "optimizer")
    throw KeyError("family", detail::format("'{}' cannot name a network in checkpoints; expected letters, digits and "
                                            "hyphens, and not mean, decoder or optimizer",
                                            name));
  const AmortizedShape shape = family.shape(latent);
  if (shape.location < 1 || shape.scale < 1 || shape.noise < 1)
    throw KeyError("family", "needs at least one location, one scale and one number of noise per datum");
  if (shape.positive < 0 || shape.positive > shape.scale)
    throw KeyError("family", detail::format("{} of its {} scales cannot be positive", shape.positive, shape.scale));
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
  check_family(given(config.family, "family"), config.model.latent);
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
  if (!dynamic_cast<const DiagonalGaussian*>(config.family.get()))
    throw KeyError("family", "the cuda engine has the diagonal Gaussian alone; other families are for the cpu engine");
  if (config.own_optimizer)
    throw KeyError("own_optimizer",
                   "the cuda engine has rmsprop and adam; an optimizer of your own is for the cpu engine");
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
