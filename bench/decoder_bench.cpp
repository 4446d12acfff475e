// The gradient (and value) of log p(x, z) for a thread's share of chains, as the inside of a leapfrog trajectory needs
// it, and the other work of an iteration on the networks. GFLOP/s are those of one thread; `of_peak` is their fraction
// of one core's peak of fused multiply-adds, measured in the same run (in floats, for bf16 products too).

#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

#include "hone/base/random.hpp"
#include "hone/latent/decoder.hpp"
#include "hone/latent/encoder.hpp"
#include "hone/latent/latent_target.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/tensor/peak.hpp"

namespace hone {
namespace {

double peak() {
  static const double gflops = measure_fma_peak();
  return gflops;
}

DecoderConfig vae() { return {.latent = 10, .hidden = {200, 200}, .pixels = 784}; }
DecoderConfig matrix_factorization() { return {.latent = 50, .hidden = {}, .pixels = 784}; }

// Multiplications and additions of one pass, forward or backward, for one chain.
double pass_flops(const DecoderConfig& config) {
  double flops = 0;
  int below = config.latent;
  for (const int units : config.hidden) {
    flops += 2.0 * below * units;
    below = units;
  }
  return flops + 2.0 * below * config.pixels;
}

struct Model {
  Model(const DecoderConfig& config, int chains, Gradients gradients)
      : decoder(config, parameters, gradients),
        data(Density::bernoulli, config.pixels, chains),
        z(config.latent, chains),
        gradient(config.latent, chains),
        value(chains),
        target(decoder, gradients) {
    const PhiloxSource random(1);
    decoder.initialize(random, InitialWeights::paper);
    decoder.pack();
    random.normals({Purpose::draw}, z.view().flat());
    std::vector<double> pixel(config.pixels);
    for (int c = 0; c < chains; ++c) {
      random.uniforms({Purpose::accept, 0, static_cast<std::uint32_t>(c)}, pixel);
      for (double& x : pixel) x = x < 0.3;
      data.set<double>(c, pixel);
    }
    target.set_data(data);
  }

  Parameters<float> parameters;
  Decoder<float> decoder;
  Minibatch<float> data;
  Matrix<double> z, gradient;
  std::vector<double> value;
  LatentTarget<float> target;
};

void report(benchmark::State& state, double flops) {
  const double gflop = flops * 1e-9 * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(gflop, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(gflop / peak(), benchmark::Counter::kIsRate);
  state.counters["peak"] = peak();
}

void log_joint(benchmark::State& state, const DecoderConfig& config, Gradients gradients, Want want) {
  if (gradients == Gradients::bf16 && !supports_bf16()) return state.SkipWithError("this CPU has no bf16 products");
  Model model(config, static_cast<int>(state.range(0)), gradients);
  peak();
  for (auto _ : state) model.target.evaluate(model.z, want, model.value, model.gradient);
  const bool twice = gradients == Gradients::bf16 && want == Want::both;  // the value has a forward pass of its own
  const int passes = want == Want::value ? 1 : twice ? 3 : 2;
  report(state, passes * pass_flops(config) * static_cast<double>(state.range(0)));
}

// Refines 100 chains as one of the paper's iterations does: t = 8 steps of L = 5, on range(0) threads.
void refine(benchmark::State& state, const DecoderConfig& config, Gradients gradients) {
  if (gradients == Gradients::bf16 && !supports_bf16()) return state.SkipWithError("this CPU has no bf16 products");
  constexpr int chains = 100, steps = 8, leapfrog = 5;
  Model model(config, chains, gradients);
  Team team(static_cast<int>(state.range(0)));
  Refiner refiner(Hmc({leapfrog}),
                  {.steps = steps, .adapt = Adapt::inside, .step_size = 0.5 / config.latent, .acceptance = 0.9}, team);
  const PhiloxSource random(3);
  Chains batch(config.latent, chains);
  batch.z = model.z;
  model.target.evaluate(batch.z, Want::both, batch.value, batch.gradient);
  peak();
  std::uint32_t iteration = 0;
  double acceptance = 0;
  for (auto _ : state) acceptance = refiner.refine(model.target, batch.view(), chains, ++iteration, random).acceptance;
  report(state, 2 * pass_flops(config) * chains * steps * leapfrog / static_cast<double>(team.threads()));
  state.counters["acceptance"] = acceptance;
}

void parameter_gradient(benchmark::State& state, const DecoderConfig& config) {
  const int chains = static_cast<int>(state.range(0));
  Model model(config, chains, Gradients::exact);
  std::vector<std::uint32_t> datum(chains);
  std::iota(datum.begin(), datum.end(), 0u);
  std::vector<float> gradient(model.parameters.size());
  Tape<float> tape;
  model.decoder.prepare(tape, chains);
  peak();
  for (auto _ : state) {
    model.decoder.record({model.z, model.data, datum}, 0, chains, tape);
    model.decoder.sum_gradient(tape, {.part = 0, .parts = 1, .begin = 0, .end = chains}, gradient);
    benchmark::ClobberMemory();
  }
  const double first = 2.0 * config.latent * (config.hidden.empty() ? config.pixels : config.hidden.front());
  report(state, (3 * pass_flops(config) - first) * chains);  // no gradient in z
}

void pack(benchmark::State& state, const DecoderConfig& config, Gradients gradients) {
  if (gradients == Gradients::bf16 && !supports_bf16()) return state.SkipWithError("this CPU has no bf16 products");
  Model model(config, 1, gradients);
  for (auto _ : state) model.decoder.pack();
}

void encode(benchmark::State& state) {
  const int chains = static_cast<int>(state.range(0));
  Model model(vae(), chains, Gradients::exact);
  Parameters<float> parameters;
  Encoder<float> encoder({784, {200, 200}, DiagonalGaussian().shape(10), DiagonalGaussian().name()}, parameters);
  encoder.initialize(PhiloxSource(2), InitialWeights::paper, 1);
  encoder.pack();
  Matrix<double> mean(10, chains), sd(10, chains);
  std::vector<float> gradient(parameters.size());
  EncoderTape<float> tape;
  encoder.prepare(tape, model.data.view());
  peak();
  for (auto _ : state) {
    encoder.forward(tape, 0, chains, mean, sd);
    encoder.backward(tape, 0, chains, {mean, sd});
    encoder.sum_gradient(tape, {.part = 0, .parts = 1, .begin = 0, .end = chains}, gradient);
    benchmark::ClobberMemory();
  }
  const double pass = 2 * pass_flops(vae());                 // two networks, as wide as the decoder
  report(state, (3 * pass - 2 * 2.0 * 784 * 200) * chains);  // no gradient in the data
}

BENCHMARK_CAPTURE(log_joint, vae_gradient, vae(), Gradients::exact, Want::gradient)->Arg(50)->Arg(37)->Arg(100)->Arg(1);
BENCHMARK_CAPTURE(log_joint, vae_both, vae(), Gradients::exact, Want::both)->Arg(50);
BENCHMARK_CAPTURE(log_joint, vae_value, vae(), Gradients::exact, Want::value)->Arg(50);
BENCHMARK_CAPTURE(log_joint, vae_bf16_gradient, vae(), Gradients::bf16, Want::gradient)->Arg(50);
BENCHMARK_CAPTURE(log_joint, vae_bf16_both, vae(), Gradients::bf16, Want::both)->Arg(50);
BENCHMARK_CAPTURE(log_joint, mf_gradient, matrix_factorization(), Gradients::exact, Want::gradient)
    ->Arg(50)
    ->Arg(37)
    ->Arg(100)
    ->Arg(1);
BENCHMARK_CAPTURE(log_joint, mf_both, matrix_factorization(), Gradients::exact, Want::both)->Arg(50);
BENCHMARK_CAPTURE(log_joint, mf_bf16_gradient, matrix_factorization(), Gradients::bf16, Want::gradient)->Arg(50);
BENCHMARK_CAPTURE(refine, vae, vae(), Gradients::exact)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(refine, vae_bf16, vae(), Gradients::bf16)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(refine, mf, matrix_factorization(), Gradients::exact)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(refine, mf_bf16, matrix_factorization(), Gradients::bf16)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(parameter_gradient, vae, vae())->Arg(100);
BENCHMARK_CAPTURE(parameter_gradient, mf, matrix_factorization())->Arg(100);
BENCHMARK_CAPTURE(pack, vae, vae(), Gradients::exact);
BENCHMARK_CAPTURE(pack, vae_bf16, vae(), Gradients::bf16);
BENCHMARK(encode)->Arg(100);

}  // namespace
}  // namespace hone
