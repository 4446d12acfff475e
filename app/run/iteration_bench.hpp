#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/run/settings.hpp"
#include "app/run/train_config.hpp"
#include "hone/engine/config.hpp"
#include "hone/latent/data_set.hpp"

namespace hone {

// How long an iteration of training takes, on synthetic data.
struct IterationBenchConfig {
  TrainRunConfig run = paper_run_config();  // `hone bench` offers some of its settings
  std::optional<std::uint32_t> iterations;  // in all, of each run
  int runs = 1;                             // that differ by their seeds: side by side on a device, else in turn
};

// model, objective, likelihood, categories, steps, leapfrog, latent, hidden, encoder_hidden, family, rank, channels,
// shape, batch, optimizer, precision, engine, threads, iterations, runs
Settings iteration_bench_settings(IterationBenchConfig& config);

struct IterationBench {
  std::string model, objective, likelihood, family, precision, engine;
  std::string level;   // instruction level of the cpu engine, or the device's name
  std::string device;  // how the cuda engine executes an iteration, in words; empty on the cpu
  int latent = 0, batch = 0;
  std::vector<int> shape, hidden, encoder_hidden, channels;
  int steps = 0, threads = 1, runs = 1;
  std::uint32_t iterations = 0;  // timed, in all, of each run
  double us_per_iteration = 0;   // of one run: that of all runs divided by their number; median over repeats
  double gflops = 0;
  // The rate of fused multiply-adds on as many threads, measured in the same run. The peak of an iteration with
  // products of both kinds is the rate that it would have if each kind ran at its own peak.
  double float_peak_gflops = 0, bf16_peak_gflops = 0;  // the latter 0 where no product is of bf16
  double peak_together_gflops = 0;                     // float32, of all threads at once for 0.1 s; 0 on a device
  double bf16_share = 0;                               // of the iteration's FLOPs
  double peak_gflops = 0;                              // 0 on a device, where no peak is measured
  double fraction_of_peak = 0;

  std::string to_json() const;
};

// Multiplications and additions of the matrix products of one iteration. For a chain, with P the decoder's weights
// times two (one pass) and P₁ those of its layer next to z:
//   2P (1 + t L)   log p and its gradient at z0, and the gradients of t trajectories of L leapfrog steps
//   P t + 2P       bf16-trajectory alone: exact values for t accept steps, and the first kick's gradient; gradients of
//                  trajectories are then products of bf16, all others of float
//   3P − P₁        gradient in the decoder's parameters: forward, backward (not down to z), sums over the minibatch
// and for a datum 3E − E₁ for either network of q, E and E₁ likewise. Nothing else is counted: no activations, no
// random numbers, no updates. Without refinement t = 0; mala has one gradient per step, random-walk one value.
struct IterationFlops {
  double exact = 0;  // products of floats, or of doubles
  double bf16 = 0;
  double all() const { return exact + bf16; }
};
IterationFlops iteration_flops(const TrainConfig& config, ImageShape image);

// Several repeats after a warm-up.
IterationBench bench_iteration(IterationBenchConfig config);

}  // namespace hone
