#pragma once

#include <cstdint>
#include <vector>

#include "app/data/byte_source.hpp"

namespace hone {

// A sparse matrix with one datum per row: the entries that are not zero, in the order of the file, counted from 0.
struct MatrixMarket {
  int rows = 0, cols = 0;
  std::vector<std::int32_t> row, col;
  std::vector<double> value;
};

// Reads a Matrix Market file, `coordinate` with `real`, `integer` or `pattern` entries, `general`. Throws InputError
// with the line for anything else.
MatrixMarket read_matrix_market(ByteSource& source);

}  // namespace hone
