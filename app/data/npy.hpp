#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "app/data/byte_source.hpp"
#include "hone/latent/model_config.hpp"

namespace hone {

enum class NpyType { boolean, uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64 };

// One datum per row, last index fastest whatever the order in the file. Booleans are bytes 0 and 1. Integers are bytes
// if all of them are from 0 to 255, otherwise doubles.
struct NpyMatrix {
  NpyType type = NpyType::uint8;  // in the file
  int rows = 0;
  std::vector<int> shape;  // of a datum
  int cols = 0;            // the product of its sizes
  std::variant<std::vector<std::uint8_t>, std::vector<float>, std::vector<double>> values;
};

// Reads a .npy file (versions 1.0 to 3.0) with an array of two or more dimensions to its end. Throws InputError if
// anything is wrong, including a number that is not finite (NaN may be allowed), or an integer that a double cannot
// hold.
struct NpyWanted {
  Missing missing = Missing::refused;
  std::size_t least_sizes = 2;  // dimensions of the array
};
NpyMatrix read_npy(ByteSource& source, const NpyWanted& wanted = {});

}  // namespace hone
