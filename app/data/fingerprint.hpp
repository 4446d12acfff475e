#pragma once

#include <string>

#include "hone/latent/data_set.hpp"

namespace hone {

// A checksum of a data set's values and shape: equal for equal data, wherever they came from.
std::string fingerprint(const DataSet& data);

}  // namespace hone
