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

// Reads an IDX file (the format of MNIST) to its end. Throws InputError where anything is not as it should be.
IdxArray read_idx(ByteSource& source);

}  // namespace hone
