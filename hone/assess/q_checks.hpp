#pragma once

#include <vector>

#include "hone/assess/psis.hpp"
#include "hone/assess/refined_draws.hpp"
#include "hone/target/whitened.hpp"

namespace hone {

// Along one direction of z: how far the refined draws' mean lies from q's, and how wide q is beside them.
struct Direction {
  std::vector<double> vector;  // in z, each coordinate in units of its refined sd; of length one
  double sd_ratio;             // sd of q over sd of the refined draws, corrected for what chance makes of extremes
};

// How q compares with the refined draws.
struct QChecks {
  double k_hat = 0;  // Pareto k of the importance weights
  double effective_draws = 0;
  double p_value = 1;  // of q = p, by exchangeability
  int p_value_flips = 0;
  // Of every unconstrained coordinate: (mean of q − refined mean) / refined sd, and sd of q / refined sd.
  std::vector<double> shift, sd_ratio;
  std::vector<Direction> narrowest, widest;  // where q is too narrow, or too wide, most; empty beyond 300 dimensions
  std::vector<double> mode_mass, q_weight;   // of a mixture's components: by importance weights, and in q
  double tail_growth = 0;                    // what the last doubling of t added to the VCD, in standard errors
};

// Everything is measured on pairs of `refined` over e, and reported over z = m + L e. Weights come in `weights`.
QChecks check_q(const RefinedDraws& refined, const Family& family, const Whitening& whitening, const Psis& weights,
                std::uint64_t seed, int threads);

}  // namespace hone
