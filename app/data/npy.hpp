#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "app/data/byte_source.hpp"
#include "hone/latent/model_config.hpp"

namespace hone {

enum class NpyType { boolean, uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64 };

// Booleans are bytes 0 and 1. Integers are bytes if all of them are from 0 to 255, otherwise doubles.
using NpyValues = std::variant<std::vector<std::uint8_t>, std::vector<float>, std::vector<double>>;

struct NpyHeader {
  NpyType type = NpyType::uint8;  // in the file
  bool fortran_order = false;     // first index fastest
  int rows = 0;                   // data
  std::vector<int> shape;         // of a datum
  int cols = 0;                   // the product of its sizes
};

struct NpyWanted {
  Missing missing = Missing::refused;
  std::size_t least_sizes = 2;  // dimensions of the array
};

// Reads a .npy file (versions 1.0 to 3.0) with an array of two or more dimensions. Throws InputError if anything is
// wrong, including a number that is not finite (NaN may be allowed), or an integer that a double cannot hold.
class NpyReader {
 public:
  NpyReader(ByteSource& source, const NpyWanted& wanted);
  const NpyHeader& header() const { return header_; }

  // The values of the next data, at most `most`, none at the end; one datum after the other, last index fastest. An
  // array in Fortran order comes as a whole, however few are asked for.
  NpyValues next(int most);

 private:
  ByteSource& source_;
  Missing missing_;
  NpyHeader header_;
  int done_ = 0;
};

// The whole array.
struct NpyMatrix : NpyHeader {
  NpyValues values;
};
NpyMatrix read_npy(ByteSource& source, const NpyWanted& wanted = {});

}  // namespace hone
