// Speed of a toy iteration, of the densities under it, and of all ten fits of Figure 1.
//   gradients_ratio: time of an iteration over the time of its density evaluations alone, in the same run; 1 is the
//   limit that no method with these evaluations can beat.

#include <benchmark/benchmark.h>

#include <memory>

#include "app/run/fig1.hpp"
#include "app/run/progress.hpp"
#include "app/run/toy.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/fit/fit.hpp"
#include "hone/target/toys.hpp"

namespace hone {
namespace {

// Seconds of one gradient of one point, each depending on the one before, as in a trajectory.
double gradient_seconds(const Target& target) {
  double z[2] = {0.3, -0.4}, slope[2] = {};
  constexpr int count = 400'000;
  double best = 1;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Stopwatch watch;
    for (int i = 0; i < count; ++i) {
      target.evaluate({z, 2, 1}, Want::gradient, {}, {slope, 2, 1});
      z[0] = 0.3 + 1e-3 * slope[0];
    }
    benchmark::DoNotOptimize(z[0]);
    best = std::min(best, watch.seconds() / count);
  }
  return best;
}

void iteration(benchmark::State& state, Toy toy, FamilyKind family, ObjectiveKind objective) {
  ToyConfig config;
  config.target = toy;
  config.family = family;
  const auto target = make_toy(toy);
  const auto q = starting_family(config);
  FitConfig fit_config;
  fit_config.objective = make_objective({.kind = objective});
  fit_config.refine.adapt = Adapt::inside;
  const PhiloxSource random(1);
  Fit fit(*target, *q, fit_config, random);
  const Stopwatch watch;
  for (auto _ : state) benchmark::DoNotOptimize(fit.step().elbo);
  const double seconds = watch.seconds() / static_cast<double>(state.iterations());
  const int gradients = q->components() * (fit_config.objective->refines() ? 1 + 3 * 5 : 1);
  state.counters["iterations/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["gradients_ratio"] = seconds / (gradients * gradient_seconds(*target));
}

BENCHMARK_CAPTURE(iteration, gaussian_vcd, Toy::gaussian, FamilyKind::gaussian, ObjectiveKind::vcd);
BENCHMARK_CAPTURE(iteration, mixture_vcd, Toy::mixture, FamilyKind::gaussian, ObjectiveKind::vcd);
BENCHMARK_CAPTURE(iteration, banana_vcd, Toy::banana, FamilyKind::gaussian, ObjectiveKind::vcd);
BENCHMARK_CAPTURE(iteration, gaussian_kl, Toy::gaussian, FamilyKind::gaussian, ObjectiveKind::kl);
BENCHMARK_CAPTURE(iteration, gaussian_full_vcd, Toy::gaussian, FamilyKind::gaussian_full, ObjectiveKind::vcd);
BENCHMARK_CAPTURE(iteration, banana_two_components_vcd, Toy::banana, FamilyKind::mixture, ObjectiveKind::vcd);
BENCHMARK_CAPTURE(iteration, mixture_two_components_vcd, Toy::mixture, FamilyKind::mixture, ObjectiveKind::vcd);

// The ten fits of Figure 1 (one seed) on one core, final values included, nothing written.
void figure1(benchmark::State& state) {
  for (auto _ : state)
    for (const Fig1Panel& panel : fig1_panels())
      for (const ObjectiveKind objective : {ObjectiveKind::kl, ObjectiveKind::vcd})
        benchmark::DoNotOptimize(run_toy(fig1_config(panel, objective, 1), nullptr, nullptr).vcd.mean);
}
BENCHMARK(figure1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hone
