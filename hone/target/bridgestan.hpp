#pragma once

#include <filesystem>
#include <memory>

#include "hone/target/posterior.hpp"

namespace hone {

// The posterior of a compiled Stan model: a shared library with BridgeStan's C interface, version 2, loaded where it
// lies, with the data of a JSON file (none where the path is empty). The density is normalised: no constants dropped.
//
// - A point at which the model throws has the value −∞; complaint() keeps the first message.
// - Values on the natural scale include transformed parameters and generated quantities. Random numbers in generated
//   quantities are a function of the point alone, so that they do not depend on threads. Where generated quantities
//   or transformed parameters throw, they are NaN; where the parameters themselves do, constrain() throws.
// - A library built without STAN_THREADS is called by one thread at a time.
// - What the model prints is not shown.
//
// A library stays loaded until the program ends. Throws InputError where the file is no shared library or not
// BridgeStan's, for version 1 by name, where the data cannot be read or do not fit, and where there is no parameter.
// Messages call the model by `name` (the Stan program that the library was compiled from), or else by the library.
std::unique_ptr<Posterior> load_bridgestan(const std::filesystem::path& library, const std::filesystem::path& data = {},
                                           const std::filesystem::path& name = {});

}  // namespace hone
