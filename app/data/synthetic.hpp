#pragma once

#include <cstdint>

#include "hone/latent/data_set.hpp"

namespace hone {

// Generated binary images of 28 × 28 pixels: data [begin, end) of an endless sequence fixed by the seed. A datum is a
// bar or an oval of random place, size and slant, with a few pixels flipped.
DataSet synthetic_data(std::uint64_t seed, int begin, int end);

}  // namespace hone
