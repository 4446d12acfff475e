#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hone/base/statistics.hpp"
#include "hone/family/family.hpp"
#include "hone/mcmc/kernel.hpp"
#include "hone/target/target.hpp"

namespace hone {

struct RefinedConfig {
  KernelConfig kernel{KernelKind::hmc, 5, 4, StepSizes::varied};
  double acceptance = 0.8;          // that the step size aims at
  std::optional<double> step_size;  // found where it is not given; frozen in any case
  int draws = 4000;                 // at least 100
  int steps = 8;                    // the chains are looked at after so many steps for the first time; even
  int most_steps = 512;             // and never run on beyond this
  std::int64_t gradients = 0;       // nor where that would cost more than this (0: no limit)
  int chains_per_start = 64;
  std::uint64_t seed = 1;
  int threads = 1;
};

// What the pairs (z0, z_t) say at one t.
struct PairsAt {
  int steps;           // t
  Estimate vcd;        // eq. new_divergence_rearranged
  double acceptance;   // mean acceptance probability of the steps since the t before
  double jump;         // mean |z_t − z0|² over 2 Σ Var_q: 1 where z_t and z0 are independent draws of q
  double correlation;  // of log p(z0) with log p(z_t)
};

// Where super-chains begin: one point a column, and the mode that it belongs to. Chains are not asked to join modes
// whose masses a mixture q accounts for: nested R̂ compares the super-chains of one mode, of which there must be two or
// more.
struct SuperStarts {
  Matrix<double> z;
  std::vector<int> mode;  // all the same where q has one component
};

// Do the refined draws stand for the posterior? Everything that is known on it.
struct ChainChecks {
  double nested_rhat = 0;    // largest over coordinates and log p; over super-chains from the starts
  int rhat_coordinate = -1;  // where; −1: log p
  double drift = 0;          // largest |mean of h(z_t) − h(z_t/2)| in standard errors; coordinates, squares, log p
  double drift_limit = 0;    // what it may be by chance
  double memory = 0;         // largest |correlation| of a coordinate, or log p, at z0 with the same at z_t, within
                             // components of q
  int memory_coordinate = -1;
  double acceptance = 0;                        // of the second half of the steps
  std::int64_t proposals = 0, divergences = 0;  // likewise
  double stuck = 0;                             // share of chains that never moved
  double bfmi = 0;  // D / (D/2 + Var log p): 1 for a Gaussian, small where energy mixes slowly (docs/decisions.md)
  int super_chains = 0;
};

// Pairs of draws of q and what t steps of the kernel made of them, both over the coordinates of family and target.
// The pairs are independent of each other. Draws of q outside the support are left out.
struct RefinedDraws {
  Matrix<double> z0, zt;               // (D, n)
  std::vector<int> component;          // of q that made the draw
  std::vector<double> log_p0, log_q0;  // at z0
  std::vector<double> log_pt, log_qt;  // at z_t
  int steps = 0;                       // t
  double step_size = 0;
  std::int64_t dropped_draws = 0;
  std::vector<PairsAt> at;  // t = 1, 2, 4, …
  ChainChecks checks;
  bool capped = false;  // the checks asked for more steps than were allowed

  int count() const { return z0.cols(); }
};

// The limits of ChainChecks, in one place.
inline constexpr double most_rhat = 1.01, most_memory = 0.2, least_chain_acceptance = 0.5, most_divergent = 0.01,
                        most_stuck = 0.005, least_bfmi = 0.2;
// Whether the chains have arrived: nested R̂, drift and memory are within their limits.
bool arrived(const ChainChecks& checks);

// Draws from q and refines on, doubling t, until nested R̂ over super-chains from `starts` (one a column) is small,
// moments at t/2 and t agree, and z0 is forgotten. `progress` hears (t, nested R̂) now and then.
RefinedDraws refine_draws(const Target& target, const Family& family, const SuperStarts& starts,
                          const RefinedConfig& config, const std::function<void(int, double)>& progress = {});

// n independent draws from q: of a mixture, each of a component chosen at random, which is written to `component` (n).
Matrix<double> independent_draws(const Family& family, int count, const RandomSource& random,
                                 std::vector<int>* component = nullptr);

}  // namespace hone
