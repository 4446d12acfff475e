#pragma once

#include <cstdint>
#include <vector>

#include "app/data/byte_source.hpp"

namespace hone {

// An array of unsigned bytes, last index fastest: images are (items, rows, cols), labels (items).
struct IdxArray {
  std::vector<int> dimensions;  // one to three, none of them 0
  std::vector<std::uint8_t> values;
};

// Reads an IDX file (the format of MNIST) to its end. Throws InputError if anything is wrong.
IdxArray read_idx(ByteSource& source);

}  // namespace hone
