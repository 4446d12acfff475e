#pragma once

#include <vector>

#include "app/data/byte_source.hpp"

namespace hone {

// Numbers, one datum per row, last index fastest.
struct CsvTable {
  int rows = 0, cols = 0;
  std::vector<double> values;
};

// Reads a table of numbers, separated by commas, semicolons or tabs, whichever the first line has most of. A first line
// without any number is a header. Throws InputError with line and column for anything else: a missing value, a text, a
// line with more or fewer columns.
CsvTable read_csv(ByteSource& source);

}  // namespace hone
