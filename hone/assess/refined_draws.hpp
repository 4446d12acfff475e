#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hone/base/statistics.hpp"
#include "hone/family/family.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/target/target.hpp"
#include "hone/target/whitening.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

/// The step that led to a state.
struct StateMove {
  double acceptance = 0;  ///< acceptance probability of its proposal
  double energy = 0;      ///< ½|p|² − log p where its trajectory began; NaN where the kernel is not HMC
  bool diverged = false;  ///< whether its trajectory diverged
};

/// States of several chains at the same steps, chain after chain: state s of chain c is column c · per_chain + s.
struct ChainStates {
  /// No states.
  ChainStates() = default;
  /// Memory for `states` states of each of `count` chains.
  ChainStates(int dimension, int count, int states)
      : z(dimension, count * states),
        log_p(static_cast<std::size_t>(count * states)),
        moves(static_cast<std::size_t>(count * states)),
        chains(count) {}

  Matrix<double> z;              ///< (D, n)
  std::vector<double> log_p;     ///< log p at z (n)
  std::vector<StateMove> moves;  ///< of the refined draws: the last step to each (n)
  Matrix<double> gradient;       ///< of log p (D, n), where it was asked for
  int chains = 0;                ///< how many chains there are

  /// n
  int count() const { return z.cols(); }
  /// States of each chain.
  int per_chain() const { return chains > 0 ? z.cols() / chains : 0; }
};

/// The means of the chains, each over its own values; `values` has chain after chain.
std::vector<double> means_of_chains(std::span<const double> values, int chains);

/// The mean of the values, with an error from the spread of the chains' own means. Chains must be independent of each
/// other and at least two; how the values depend on each other within a chain does not matter.
Estimate mean_over_chains(std::span<const double> values, int chains);

/// The standard deviation of the values, with an error from the spread of the chains' own variances.
Estimate sd_over_chains(std::span<const double> values, int chains);

/// The number of independent draws whose mean would have the same error: variance of the values / error². No more than
/// n log₁₀ n (antithetic chains), and n where the values do not vary.
double effective_draws(std::span<const double> values, int chains);

/// The same of n values with this variance, whose mean has the standard error `se`.
double effective_draws(std::size_t n, double variance, double se);

/// The p-quantile, between the two nearest values. Puts smaller values before larger ones.
double quantile_of(std::span<double> values, double p);

/// The effective number of draws for a quantile: of the indicator of values below `threshold`.
double effective_draws_below(std::span<const double> values, int chains, double threshold);

/// Values of interest at states e (D, n): one column per state.
using PrintedValues = std::function<Matrix<double>(MatrixView<const double>)>;

/// What is kept of states.
enum class Keep {
  points,     ///< z and log p
  gradients,  ///< z, log p and its gradient
};

/// The coordinates in which chains move.
enum class ChainCoordinates {
  affine,   ///< those of target and family: an affine map of the posterior's
  adapted,  ///< nonlinear ones, learned from the states between rounds where they help: a funnel is straight in them
};

/// How refine_draws refines and when it stops.
struct RefinedConfig {
  /// the MCMC kernel; of HMC the number of leapfrog steps adapts with the step size
  std::shared_ptr<const Kernel> kernel = std::make_shared<Hmc>(HmcConfig{5, 4, StepSizes::varied});
  double acceptance = 0.8;          ///< the acceptance that the step size aims at
  std::optional<double> step_size;  ///< kernel and step size are frozen; none: both adapt between rounds
  double most_step_size = 1e300;    ///< the step size adapts up to this one
  double first_step_size = 0;       ///< where adaptation begins; 0: found by a search
  /// 0: HMC's trajectories begin with the length that suits a standard normal. Otherwise pilots of at most this many
  /// leapfrog steps choose it, for a posterior whose correlations are left in the coordinates.
  int pilot_steps = 0;
  double first_time = 0;  ///< with pilots: the least value of step size times length to begin with
  /// in which chains move; states are over those of the target all the same
  ChainCoordinates coordinates = ChainCoordinates::adapted;
  const Whitening* whitening = nullptr;     ///< with which the target's coordinates were made, for adapted ones
  const ChainStates* earlier = nullptr;     ///< of other chains: the first adapted coordinates are learned from them
  int q_draws = 1000;                       ///< draws of q; at least 100 must lie in the support
  int pairs = 128;                          ///< the first of them start a chain each; 0: only super-chains run
  int chains_per_start = 16;                ///< chains per super-chain
  int least_per_start = 2;                  ///< they are reduced to this many if the budget runs short; pairs likewise
  int draws = 4000;                         ///< states beyond twice this number are thinned; at least 100
  Keep keep = Keep::points;                 ///< of the refined draws
  double error = 0.025;                     ///< largest standard error of a mean that is wanted, in sds
  PrintedValues printed;                    ///< whose errors count; none: the coordinates
  std::optional<int> parameters;            ///< the sds of this many first printed values must be known; none: of all
  int steps = 8;                            ///< the chains are first checked after this many steps; even
  int most_steps = 4096;                    ///< at most this many steps
  std::int64_t gradients = 0;               ///< at most this many gradients; 0: no limit
  const std::atomic<bool>* stop = nullptr;  ///< true: t is not doubled again
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

/// How far the means moved in one round of the chains.
struct DriftAt {
  int steps;     ///< t, when the round had ended
  double drift;  ///< ChainChecks::drift
  double limit;  ///< ChainChecks::drift_limit
};

/// Where super-chains start, and which mode each start belongs to. Chains need not travel between modes whose masses a
/// mixture q accounts for: nested R̂ compares super-chains of the same mode, so each mode needs at least two.
struct SuperStarts {
  /// One start per column; or one chain per column, super-chain after super-chain, to go on with chains.
  Matrix<double> z;
  std::vector<int> mode;  ///< per super-chain, from 0; all the same if q has one component
};

/// Evidence on whether the refined draws represent the posterior.
struct ChainChecks {
  double nested_rhat = 0;       ///< the largest over coordinates and log p, chance removed, between super-chains
  double spread = 0;            ///< largest variance of super-chains' means, relative to that expected by chance
  double spread_limit = 1e300;  ///< the largest spread that chance explains
  int rhat_coordinate = -1;     ///< the coordinate of nested_rhat; −1: log p
  /// largest change of a mean from steps t/4 … t/2 to t/2 … t, in standard errors: of z_i, z_i², log p and of being in
  /// a tail of 5 %
  double drift = 0;
  double drift_limit = 0;        ///< the largest drift that chance explains
  int drift_coordinate = -1;     ///< the coordinate of drift; −1: log p
  double memory = 0;             ///< largest |correlation| of z_i, or log p, at z0 and z_t, within components of q
  double memory_limit = 0.2;     ///< the largest acceptable memory: most_memory and an allowance for chance
  int memory_coordinate = -1;    ///< the coordinate of memory; −1: log p
  double effective = 0;          ///< smallest effective number of draws for the mean of a coordinate
  double tail_effective = 0;     ///< the same for the 5 % and 95 % quantiles
  double effective_needed = 0;   ///< the least acceptable value of both
  double per_chain = 1e300;      ///< effective draws per chain: small where chains remember their starts
  double error = 0;              ///< largest standard error of a printed mean, in sds
  double error_wanted = 0;       ///< the largest error that is wanted
  double sd_error = 0;           ///< largest relative standard error of a parameter's sd, where tails are not heavy
  int sd_error_value = -1;       ///< which of the printed values it belongs to
  double acceptance = 0;         ///< mean acceptance probability of the second half of the steps
  std::int64_t proposals = 0;    ///< in the second half of the steps
  std::int64_t divergences = 0;  ///< in the second half of the steps
  double stuck = 0;              ///< fraction of chains that never moved
  double bfmi = 0;               ///< D / (D/2 + Var log p): 1 for a Gaussian, small if energy mixes slowly
  int super_chains = 0;          ///< how many there were
  int chains = 0;                ///< how many chains went on to the end
  int chains_begun = 0;          ///< how many chains began: more than `chains` where the budget ran short
  double tail_index = 0;         ///< largest Pareto k of a coordinate's tail; 0 beyond most_tail_dimensions
  int tail_coordinate = -1;      ///< the coordinate of tail_index
  int burn_in = 1 << 30;         ///< steps before the first refined draw
  /// q has several modes, and the chains forget which one they started in: everything above is over all modes
  bool crosses_modes = false;
};

/// Draws from q, and states of chains that have forgotten where they started, in the coordinates of family and target.
/// Some chains start at draws of q, others, the super-chains, at the starts. Both give refined draws, unless q has
/// several modes: then only those from q, whose weights account for the modes. Draws outside the support are left out.
struct RefinedDraws {
  Matrix<double> z0;                     ///< draws from q (D, n0)
  std::vector<int> component;            ///< the component of q that each is from
  std::vector<double> log_p0;            ///< log p at z0
  std::vector<double> log_q0;            ///< log q at z0
  ChainStates states;                    ///< the refined draws: every chain's states t/2 … t, perhaps thinned
  std::vector<double> log_q;             ///< log q at the refined draws
  ChainStates before;                    ///< the same chains' states t/4 … t/2
  Matrix<double> zt;                     ///< (D, pairs) where the chains that started at the first z0 are after t steps
  std::vector<double> log_pt;            ///< log p at zt
  std::vector<double> log_qt;            ///< log q at zt
  Matrix<double> super_ends;             ///< (D, chains) where the super-chains are after t steps
  int steps = 0;                         ///< t
  int chains_per_start = 0;              ///< chains per super-chain in the end: fewer where the budget ran short
  std::shared_ptr<const Kernel> kernel;  ///< as it is in the end
  double step_size = 0;                  ///< as it is in the end
  double most_step_size = 0;             ///< trajectories diverge at larger step sizes
  std::int64_t dropped_draws = 0;        ///< draws outside the support
  std::vector<PairsAt> at;               ///< of the pairs, for t = 1, 2, 4, …
  std::vector<DriftAt> drifts;           ///< after each round of the chains
  Estimate vcd;                          ///< from all z0 and all states: the limit of many steps
  ChainChecks checks;                    ///< whether the chains have arrived, and more
  bool adapted_coordinates = false;      ///< the chains moved in adapted coordinates in the end
  bool capped = false;                   ///< the checks asked for more steps than were allowed
};

inline constexpr double most_rhat = 1.01;   ///< largest acceptable ChainChecks::nested_rhat
inline constexpr double most_memory = 0.2;  ///< largest acceptable ChainChecks::memory, before the allowance for chance
inline constexpr double least_chain_acceptance = 0.5;  ///< smallest acceptable ChainChecks::acceptance
inline constexpr double most_divergent = 0.01;         ///< largest acceptable fraction of divergent proposals
inline constexpr double most_stuck = 0.005;            ///< largest acceptable ChainChecks::stuck
inline constexpr double least_bfmi = 0.3;              ///< a smaller ChainChecks::bfmi is worth a note
inline constexpr double heavy_tail = 0.45;             ///< a larger ChainChecks::tail_index takes a long burn-in
inline constexpr int most_tail_dimensions = 1000;      ///< ChainChecks::tail_index is looked for up to this dimension
inline constexpr int long_burn_in = 128;               ///< steps in which chains are taken to reach a heavy tail
inline constexpr double least_effective = 100;         ///< smallest acceptable ChainChecks::effective
inline constexpr double most_sd_error = 0.08;          ///< largest acceptable ChainChecks::sd_error
inline constexpr double slow_sd = 0.4;         ///< a larger tail index: the sd may not exist, or converges slowly
inline constexpr double least_per_chain = 2;   ///< smallest acceptable ChainChecks::per_chain
inline constexpr double enough_per_chain = 3;  ///< a refinement goes on until ChainChecks::per_chain reaches this

/// Whether a tail is so heavy that chains with this burn-in may not have reached it. Chains seldom leave the centre,
/// and until they do, nothing in their states drifts.
bool misses_tail(const ChainChecks& checks);

/// Whether the chains have arrived: nested R̂, drift, memory, tails and divergences are within their limits.
bool arrived(const ChainChecks& checks);

/// Draws from q and runs chains from some of the draws and from `starts`. Doubles t until nested R̂ between super-chains
/// is small, means, sds and tails agree between the two halves of the chains, z0 is forgotten, and the errors of what
/// is printed are as small as wanted. Where the budget does not let all chains go on, fewer of them do. If an
/// evaluation throws Stopped, the draws are those of the last complete round; without one, Stopped gets through. After
/// a round that does not suffice, step size and length of the trajectories adapt to it, and its states are not used.
/// `progress` is told (t, nested R̂) from time to time. Throws InputError if the configuration or the starts are
/// impossible.
RefinedDraws refine_draws(const Target& target, const Family& family, const SuperStarts& starts,
                          const RefinedConfig& config, const std::function<void(int, double)>& progress = {});

}  // namespace hone
