#pragma once

#include <memory>
#include <optional>

#include "hone/assess/refined_draws.hpp"
#include "hone/target/transport_map.hpp"

namespace hone {

// The map under which the states look most like draws of a standard normal: location and log scale of every coordinate
// are regressed on the coordinates before it, by maximum likelihood. A term must gain more than chance explains with
// `effective` independent states. Nothing where no term does.
std::optional<TransportMap> fitted_map(const ChainStates& states, double effective);

// By how much the map raises the mean log density of the states, in nats: that of a standard normal over u, compared
// with independent normals over e.
double gain_of_map(const TransportMap& map, const ChainStates& states);

// The fitted map if it gains much more than the present one (null: none does), otherwise null.
std::shared_ptr<const TransportMap> better_map(const ChainStates& states, double effective,
                                               const TransportMap* present);

}  // namespace hone
