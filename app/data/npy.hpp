#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "app/data/byte_source.hpp"

namespace hone {

enum class NpyType { boolean, uint8, float32, float64 };

// A matrix with one datum per row, last index fastest whatever the order in the file. Booleans are bytes 0 and 1.
struct NpyMatrix {
  NpyType type = NpyType::uint8;
  int rows = 0;
  int cols = 0;
  std::variant<std::vector<std::uint8_t>, std::vector<float>, std::vector<double>> values;
};

// Reads a .npy file (versions 1.0 to 3.0) with a two-dimensional array to its end. Throws InputError if anything
// is wrong, including a number that is not finite.
NpyMatrix read_npy(ByteSource& source);

}  // namespace hone
