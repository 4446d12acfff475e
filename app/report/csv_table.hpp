#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace hone {

// A file of numbers as a run leaves it, perhaps in the middle of a line: rows that are not whole are left out and told.
struct CsvTable {
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;  // an empty cell is NaN
  std::vector<std::string> faults;           // "metrics.csv, line 7: …"

  std::size_t rows() const { return columns.empty() ? 0 : columns.front().size(); }
  const std::vector<double>* column(std::string_view name) const;  // null where there is none
};

// Lines that begin with # are comments, the first other one names the columns. Of them those in `wanted` are kept; all
// where it is empty. InputError where the file cannot be read or names no columns.
CsvTable read_csv_table(const std::filesystem::path& path, std::span<const std::string> wanted = {});

}  // namespace hone
