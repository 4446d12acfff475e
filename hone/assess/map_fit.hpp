#pragma once

#include <memory>
#include <optional>

#include "hone/assess/refined_draws.hpp"
#include "hone/target/transport_map.hpp"
#include "hone/target/whitening.hpp"

namespace hone {

using Rotation = std::shared_ptr<const Matrix<double>>;

// Turns e into coordinates in which those that correlate with many others come first: with z = m + L e and the rows of
// L in that order, L P = Λ R, and R e has the covariance of e. Null where that changes nothing, or L is not dense. In
// these the residuals of a group about its mean are coordinates, whatever the order of z is.
Rotation hubs_first(const Whitening& whitening);

// The map under which the states look most like draws of a standard normal: location and log scale of every coordinate
// are regressed on the coordinates before it, by maximum likelihood. A term must gain more than chance explains with
// `effective` independent states. Nothing where no term does.
std::optional<TransportMap> fitted_map(const ChainStates& states, double effective, const Rotation& rotation = nullptr);

// By how much the map raises the mean log density of the states, in nats: that of a standard normal over u, compared
// with independent normals over e.
double gain_of_map(const TransportMap& map, const ChainStates& states);

// The fitted map if it gains much more than the present one (null: none does), otherwise null.
std::shared_ptr<const TransportMap> better_map(const ChainStates& states, double effective, const TransportMap* present,
                                               const Rotation& rotation = nullptr);

}  // namespace hone
