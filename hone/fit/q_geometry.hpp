#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hone/fit/posterior_fit.hpp"

namespace hone {

// A seed of its own for every part of a fit.
std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t part);

// Sets up q's coordinates and family from local approximations, best first: a mixture takes one component from each,
// weighted by their ELBOs; other kinds, and the family that `own` makes, use the first alone.
void start_q(std::span<const LocalNormal> modes, const FamilyMaker& own, FittedQ& q);

// How far q moved in a stage, in units of the coordinates that the stage had.
struct QMotion {
  double change;   // symmetrised KL; of a Gaussian exact, else by 400 draws of each side
  double growth;   // largest logarithm of a standard deviation's ratio
  double shift;    // largest shift of a mean
  int coordinate;  // of z: where sd or mean changed most, measured by the old sd
};

// Compares q with the one of parameters `before` in the same coordinates, then takes q's own location and scale for new
// coordinates, as Family::standardize has them. q(z) itself stays the same.
QMotion rewhiten(FittedQ& q, std::span<const double> before, const RandomSource& random);

// Sets a mixture's weights by importance weights of its draws, where these can be trusted. The number of starts that
// reached a mode says nothing about its mass.
void set_mode_weights(const Target& target, std::uint64_t seed, FittedQ& q);

}  // namespace hone
