#pragma once

#include <cstdint>
#include <vector>

#include "hone/fit/local_normal.hpp"
#include "hone/target/shared_posterior.hpp"

namespace hone {

// find_local_normals with the random numbers of a seed, on the ranks of `shared`, the posterior behind `target`: each
// rank runs its share of the searches, with the bits that they have in one process.
std::vector<LocalNormal> find_local_normals(const Target& target, const StartConfig& config, std::uint64_t seed,
                                            const SharedPosterior& shared);

// The other ranks' part of it, for serve_evaluations.
void search_for_rank_0(const Target& target, Ranks& ranks, Team& team, Bytes job);

}  // namespace hone
