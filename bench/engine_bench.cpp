// One whole iteration of the paper's models, as training makes it. GFLOP/s count the products of the networks alone;
// `of_peak` is their fraction of what the threads' cores do at most, measured in the same run.

#include <benchmark/benchmark.h>

#include "hone/base/random.hpp"
#include "hone/engine/engine.hpp"
#include "hone/tensor/peak.hpp"

namespace hone {
namespace {

constexpr int pixels = 784, batch = 100, data = 2000;

double peak() {
  static const double gflops = measure_fma_peak();
  return gflops;
}

TrainConfig paper(ModelKind kind, ObjectiveKind objective, Precision precision) {
  TrainConfig config;
  config.model.kind = kind;
  config.objective.kind = objective;
  config.precision = precision;
  if (kind == ModelKind::logistic_mf) {
    config.model.latent = 50;
    config.model.hidden = {};
  }
  config.refine.step_size = 0.5 / config.model.latent;
  return config;
}

// Multiplications and additions of one pass through a network for one column, and those of its first layer.
struct Pass {
  Pass(int inputs, const std::vector<int>& hidden, int outputs)
      : first(2.0 * inputs * (hidden.empty() ? outputs : hidden[0])) {
    int below = inputs;
    for (const int units : hidden) {
      all += 2.0 * below * units;
      below = units;
    }
    all += 2.0 * below * outputs;
  }
  double all = 0, first;
};

double flops(const TrainConfig& config) {
  const Pass decoder(config.model.latent, config.model.hidden, pixels),
      encoder(pixels, config.model.encoder_hidden, config.model.latent);
  const bool refines = config.objective.kind != ObjectiveKind::kl;
  const double gradients = 1 + (refines ? config.refine.steps * config.kernel.leapfrog : 0);
  const double learning = (3 * decoder.all - decoder.first) + 2 * (3 * encoder.all - encoder.first);
  return batch * (2 * decoder.all * gradients + learning);
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
  const auto engine = make_cpu_engine(config, train, std::move(options));
  TrainMetrics metrics;
  peak();
  engine->train(1, metrics);
  for (auto _ : state) engine->train(1, metrics);
  const double gflop = flops(config) * 1e-9 * static_cast<double>(state.iterations());
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
