#include "hone/tensor/peak.hpp"

#include <algorithm>
#include <chrono>

namespace hone {
namespace {

template <class Element>
double measure(const Kernels<Element>& kernels) {
  using Clock = std::chrono::steady_clock;
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
double measure_bf16_peak() { return measure(kernels_of<Bf16>()); }

}  // namespace hone
