// One whole iteration of the paper's models, as training makes it. GFLOP/s count the products of the networks alone;
// `of_peak` is their fraction of the peak of the threads' cores, measured in the same run.

#include <benchmark/benchmark.h>

#include "app/run/iteration_bench.hpp"
#include "hone/base/random.hpp"
#include "hone/engine/engines.hpp"
#include "hone/tensor/peak.hpp"

namespace hone {
namespace {

constexpr int pixels = 784, data = 2000;

double peak() {
  static const double gflops = measure_fma_peak();
  return gflops;
}

TrainConfig paper(ModelKind kind, ObjectiveKind objective, Precision precision) {
  TrainConfig config = TrainConfig::paper();
  config.model.kind = kind;
  config.objective = make_objective({.kind = objective});
  config.precision = precision;
  if (kind == ModelKind::logistic_mf) {
    config.model.latent = 50;
    config.model.hidden = {};
  }
  config.refine.step_size = 0.5 / config.model.latent;
  return config;
}

DataSet images() {
  std::vector<double> values(static_cast<std::size_t>(data) * pixels);
  PhiloxSource(1).uniforms({Purpose::synthesize}, values);
  for (double& x : values) x = x < 0.3;
  return packed_if_binary(DataSet(std::move(values), ImageShape{28, 28}));
}

void iteration(benchmark::State& state, const TrainConfig& config) {
  if (config.precision == Precision::bf16_trajectory && !supports_bf16())
    return state.SkipWithError("this CPU has no bf16 products");
  static const DataSet train = images();
  EngineOptions options;
  options.threads = static_cast<int>(state.range(0));
  const auto engine = make_engine(EngineKind::cpu, config, train, std::move(options));
  TrainMetrics metrics;
  peak();
  engine->train(1, metrics);
  for (auto _ : state) engine->train(1, metrics);
  const double gflop = iteration_flops(config, train.shape()).all() * 1e-9 * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(gflop, benchmark::Counter::kIsRate);
  state.counters["of_peak"] =
      benchmark::Counter(gflop / (peak() * static_cast<double>(state.range(0))), benchmark::Counter::kIsRate);
  state.counters["peak"] = peak() * static_cast<double>(state.range(0));
}

#define HONE_ITERATION(name, ...) BENCHMARK_CAPTURE(iteration, name, paper(__VA_ARGS__))->Arg(1)->Arg(2)->UseRealTime()
HONE_ITERATION(vae_vcd, ModelKind::vae, ObjectiveKind::vcd, Precision::float32);
HONE_ITERATION(vae_vcd_bf16, ModelKind::vae, ObjectiveKind::vcd, Precision::bf16_trajectory);
HONE_ITERATION(vae_kl, ModelKind::vae, ObjectiveKind::kl, Precision::float32);
HONE_ITERATION(mf_vcd, ModelKind::logistic_mf, ObjectiveKind::vcd, Precision::float32);
HONE_ITERATION(mf_vcd_bf16, ModelKind::logistic_mf, ObjectiveKind::vcd, Precision::bf16_trajectory);
HONE_ITERATION(mf_kl, ModelKind::logistic_mf, ObjectiveKind::kl, Precision::float32);

}  // namespace
}  // namespace hone
