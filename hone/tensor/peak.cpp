#include "hone/tensor/peak.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

template <class Element>
double measure(const Kernels<Element>& kernels) {
  constexpr int runs = 200;
  constexpr double run_seconds =
      0.0005;  // shorter than a time slice, so that some runs are undisturbed on a busy machine
  long rounds = 10'000;
  double best = 0;
  volatile double sink = 0;  // keeps the compiler from dropping the sums
  for (int run = 0; run < runs; ++run) {
    const auto start = Clock::now();
    sink = sink + kernels.fused_multiply_adds(rounds);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, static_cast<double>(rounds) * kernels.flops_per_round / seconds * 1e-9);
    rounds = std::max(1000l, static_cast<long>(static_cast<double>(rounds) * run_seconds / seconds));
  }
  return best;
}

}  // namespace

double measure_fma_peak(SimdLevel level) { return measure(kernels_of<float>(level)); }
double measure_fma_peak_together(Team& team, SimdLevel level) {
  constexpr double seconds = 0.05;
  constexpr long rounds = 10'000;
  const Kernels<float>& kernels = kernels_of<float>(level);
  std::vector<double> gflops(static_cast<std::size_t>(team.threads()));
  team.for_shares(team.threads(), [&](int begin, int end, int) {
    for (int i = begin; i < end; ++i) {
      volatile double sink = 0;
      double flops = 0, passed = 0;
      for (const auto start = Clock::now(); passed < seconds;
           passed = std::chrono::duration<double>(Clock::now() - start).count()) {
        sink = sink + kernels.fused_multiply_adds(rounds);
        flops += static_cast<double>(rounds) * kernels.flops_per_round;
      }
      gflops[static_cast<std::size_t>(i)] = flops / passed * 1e-9;
    }
  });
  return std::accumulate(gflops.begin(), gflops.end(), 0.0);
}
double measure_bf16_peak() { return measure(kernels_of<Bf16>()); }

}  // namespace hone
