#pragma once

#include <memory>
#include <optional>
#include <span>

#include "hone/assess/refined_draws.hpp"
#include "hone/target/transport_map.hpp"
#include "hone/target/whitening.hpp"

namespace hone {

using Rotation = std::shared_ptr<const Matrix<double>>;

// Turns e into the coordinates that the Cholesky factor of z's covariance has with z in another order: with z = m + L e
// and the rows of L in that order, P L = Λ R. First come the coordinates `leading`, then those that correlate with many
// others: in these, what a group deviates from its mean is a coordinate, whatever the order of z is. Null where that
// changes nothing, L is not dense, or rounding would decide.
Rotation hubs_first(const Whitening& whitening, std::span<const int> leading);

// The map under which the states look most like draws of a standard normal: location and log scale of every coordinate
// are regressed on the coordinates before it, by maximum likelihood. A term must gain more than chance explains with
// `effective` independent states. Nothing where no term does. `whitening` made the states' coordinates; null: they are
// taken in their own order.
std::optional<TransportMap> fitted_map(const ChainStates& states, double effective,
                                       const Whitening* whitening = nullptr);

// By how much the map raises the mean log density of the states, in nats: that of a standard normal over u, compared
// with independent normals over e.
double gain_of_map(const TransportMap& map, const ChainStates& states);

// The fitted map if it gains much more than the present one (null: none does), and something where it is fitted to one
// half of the chains and tried on the other. Otherwise null.
std::shared_ptr<const TransportMap> better_map(const ChainStates& states, double effective, const TransportMap* present,
                                               const Whitening* whitening = nullptr);

}  // namespace hone
