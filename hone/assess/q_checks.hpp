#pragma once

#include <cstdint>

#include "hone/assess/importance.hpp"
#include "hone/assess/refined_draws.hpp"
#include "hone/assess/verdict.hpp"
#include "hone/target/whitening.hpp"

namespace hone {

struct QCheckConfig {
  std::uint64_t seed;
  int threads;
  int given = 0;  // q is known by this many draws alone; 0: any number can be drawn
};

// Compares q with the refined draws. The pairs of `refined` are in the coordinates e; the results are about z = m + L
// e. `weights` are the importance weights of refined.z0.
QChecks check_q(const RefinedDraws& refined, const Family& family, const Whitening& whitening, const Psis& weights,
                const QCheckConfig& config);

}  // namespace hone
