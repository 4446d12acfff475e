#pragma once

#include "app/data/byte_source.hpp"
#include "hone/latent/bit_rows.hpp"

namespace hone {

// Reads a text of zeros and ones to its end: one datum a line, blanks between the numbers. With `dimension` 0 the
// first line tells how many numbers a line has. Throws InputError with the line where anything else is found.
BitRows read_amat(ByteSource& source, int dimension = 0);

}  // namespace hone
