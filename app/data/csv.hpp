#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/data/byte_source.hpp"
#include "app/data/csv_header.hpp"
#include "app/data/text_lines.hpp"
#include "hone/latent/model_config.hpp"

namespace hone {

CsvHeader csv_header_named(std::string_view name);  // "auto", "yes" or "no"; throws InputError for anything else

// Numbers, one datum per row, last index fastest.
struct CsvRows {
  int rows = 0, cols = 0;
  std::vector<double> values;
  std::vector<std::string> labels;  // one per row, if there is a column of labels
};

struct CsvWanted {
  Missing missing = Missing::refused;  // ignored: a missing value is a NaN
  std::string label = {};              // the name of a column of labels; empty: there is none
  CsvHeader header = CsvHeader::automatic;
};

// Reads a table of numbers, separated by commas, semicolons or tabs, whichever the first line has most of. A first line
// without any number is a header, and so is 0, 1, 2, … (three or more), unless `header` decides otherwise. The column
// with the wanted name, if there is one, holds labels instead of numbers. Throws InputError with line and column for
// anything else: a missing value, a text, a line with more or fewer columns.
class CsvReader {
 public:
  CsvReader(ByteSource& source, CsvWanted wanted);       // reads the first row
  int cols() const { return cols_ - (label_ ? 1 : 0); }  // of numbers
  CsvRows next(int most);                                // the next rows, at most `most`; none at the end

 private:
  void fill(int rows);  // until the buffer has `rows` rows, or to the end
  bool row();           // the next; false at the end
  void begin(const std::string& line);
  void split(std::string_view line);
  bool is_header() const;
  void take_names();
  void add();
  std::string way_out(std::size_t i) const;
  [[noreturn]] void refuse(std::size_t i) const;

  TextLines lines_;
  CsvWanted wanted_;
  std::optional<std::size_t> label_;
  char separator_ = 0;
  int cols_ = 0;   // with that of labels
  int total_ = 0;  // rows so far
  CsvRows table_;
  std::string line_;
  std::vector<std::string_view> cells_;
  std::vector<std::string> names_;
};

CsvRows read_csv(ByteSource& source, const CsvWanted& wanted = {});  // the whole table

}  // namespace hone
