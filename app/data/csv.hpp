#pragma once

#include <string>
#include <vector>

#include "app/data/byte_source.hpp"
#include "hone/latent/model_config.hpp"

namespace hone {

// Numbers, one datum per row, last index fastest.
struct CsvRows {
  int rows = 0, cols = 0;
  std::vector<double> values;
  std::vector<std::string> labels;  // one per row, if there is a column of labels
};

struct CsvWanted {
  Missing missing = Missing::refused;  // ignored: a missing value is a NaN
  std::string label = {};              // the name of a column of labels; empty: there is none
};

// Reads a table of numbers, separated by commas, semicolons or tabs, whichever the first line has most of. A first line
// without any number is a header. The column with the wanted name, if the header has it, is no number but a label.
// Throws InputError with line and column for anything else: a missing value, a text, a line with more or fewer columns.
CsvRows read_csv(ByteSource& source, const CsvWanted& wanted = {});

}  // namespace hone
