#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "hone/base/statistics.hpp"
#include "hone/family/family.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/target/target.hpp"

namespace hone {

/// How refine_draws refines and when it stops.
struct RefinedConfig {
  /// the MCMC kernel
  std::shared_ptr<const Kernel> kernel = std::make_shared<Hmc>(HmcConfig{5, 4, StepSizes::varied});
  double acceptance = 0.8;                  ///< the acceptance that the step size aims at
  std::optional<double> step_size;          ///< frozen; none: found by a search
  int draws = 4000;                         ///< at least 100
  int steps = 8;                            ///< the chains are first checked after this many steps; even
  int most_steps = 512;                     ///< at most this many steps
  std::int64_t gradients = 0;               ///< at most this many gradients; 0: no limit
  const std::atomic<bool>* stop = nullptr;  ///< true: t is not doubled again
  int chains_per_start = 64;                ///< chains per super-chain
  std::uint64_t seed = 1;                   ///< of the random numbers
  int threads = 1;                          ///< results do not depend on it
};

/// What the pairs (z0, z_t) show at one t.
struct PairsAt {
  int steps;           ///< t
  Estimate vcd;        ///< eq. new_divergence_rearranged
  double acceptance;   ///< mean acceptance probability of the steps since the previous t
  double jump;         ///< mean |z_t − z0|² / (2 Σ Var_q): 1 if z_t and z0 are independent draws from q
  double correlation;  ///< of log p(z0) with log p(z_t)
};

/// Where super-chains start, and which mode each start belongs to. Chains need not travel between modes whose masses a
/// mixture q accounts for: nested R̂ compares super-chains of the same mode, so each mode needs at least two.
struct SuperStarts {
  Matrix<double> z;       ///< one start per column
  std::vector<int> mode;  ///< per start, from 0; all the same if q has one component
};

/// Evidence on whether the refined draws represent the posterior.
struct ChainChecks {
  double nested_rhat = 0;        ///< the largest over coordinates and log p, between super-chains from the starts
  int rhat_coordinate = -1;      ///< the coordinate of nested_rhat; −1: log p
  double drift = 0;              ///< largest |mean of h(z_t) − h(z_t/2)| in standard errors, h: z_i, z_i², log p
  double drift_limit = 0;        ///< what drift may be by chance
  double memory = 0;             ///< largest |correlation| of z_i, or log p, at z0 and z_t, within components of q
  int memory_coordinate = -1;    ///< the coordinate of memory; −1: log p
  double acceptance = 0;         ///< mean acceptance probability of the second half of the steps
  std::int64_t proposals = 0;    ///< in the second half of the steps
  std::int64_t divergences = 0;  ///< in the second half of the steps
  double stuck = 0;              ///< fraction of chains that never moved
  double bfmi = 0;               ///< D / (D/2 + Var log p): 1 for a Gaussian, small if energy mixes slowly
  int super_chains = 0;          ///< how many there were
};

/// Draws z0 from q and their refinements z_t, in the coordinates of family and target. The pairs are independent of
/// each other. Draws outside the support are left out.
struct RefinedDraws {
  Matrix<double> z0;               ///< draws from q (D, n)
  Matrix<double> zt;               ///< the refined draws (D, n)
  std::vector<int> component;      ///< the component of q that each draw is from
  std::vector<double> log_p0;      ///< log p at z0
  std::vector<double> log_q0;      ///< log q at z0
  std::vector<double> log_pt;      ///< log p at z_t
  std::vector<double> log_qt;      ///< log q at z_t
  int steps = 0;                   ///< t
  double step_size = 0;            ///< the frozen step size
  std::int64_t dropped_draws = 0;  ///< draws outside the support
  std::vector<PairsAt> at;         ///< t = 1, 2, 4, …
  ChainChecks checks;              ///< whether the chains have arrived, and more
  bool capped = false;             ///< the checks asked for more steps than were allowed

  /// n
  int count() const { return z0.cols(); }
};

inline constexpr double most_rhat = 1.01;              ///< largest acceptable ChainChecks::nested_rhat
inline constexpr double most_memory = 0.2;             ///< largest acceptable ChainChecks::memory
inline constexpr double least_chain_acceptance = 0.5;  ///< smallest acceptable ChainChecks::acceptance
inline constexpr double most_divergent = 0.01;         ///< largest acceptable fraction of divergent proposals
inline constexpr double most_stuck = 0.005;            ///< largest acceptable ChainChecks::stuck
inline constexpr double least_bfmi = 0.2;              ///< smallest acceptable ChainChecks::bfmi

/// Whether the chains have arrived: nested R̂, drift and memory are within their limits.
bool arrived(const ChainChecks& checks);

/// Draws from q and refines the draws, doubling t until nested R̂ between super-chains from `starts` is small, moments
/// at t/2 and t agree, and z0 is forgotten. `progress` is told (t, nested R̂) from time to time.
/// Throws InputError if the configuration or the starts are impossible.
RefinedDraws refine_draws(const Target& target, const Family& family, const SuperStarts& starts,
                          const RefinedConfig& config, const std::function<void(int, double)>& progress = {});

/// `count` independent draws from q, one per column. For a mixture, each draw is from a component chosen at random,
/// whose number is written to `component` unless that is null.
Matrix<double> independent_draws(const Family& family, int count, const RandomSource& random,
                                 std::vector<int>* component = nullptr);

}  // namespace hone
