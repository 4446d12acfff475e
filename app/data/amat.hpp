#pragma once

#include "app/data/byte_source.hpp"
#include "hone/latent/bit_rows.hpp"

namespace hone {

// Reads a text of zeros and ones to its end: one datum per line, blanks between the numbers. With `dimension` 0 the
// first line sets how many numbers each line has. Throws InputError with the line number if it finds anything else.
BitRows read_amat(ByteSource& source, int dimension = 0);

}  // namespace hone
