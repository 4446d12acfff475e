#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// A CSV file of numbers that a run wrote. It may end in the middle of a line: incomplete rows are left out and
// reported.
struct CsvTable {
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;  // an empty cell is NaN
  std::vector<std::string> faults;           // "metrics.csv, line 7: …"

  std::size_t rows() const { return columns.empty() ? 0 : columns.front().size(); }
  const std::vector<double>* column(std::string_view name) const;  // null if there is none
};

// Lines that begin with # are comments; the first other line names the columns. Keeps the columns in `wanted`, or all
// if it is empty. InputError if the file cannot be read or names no columns.
CsvTable read_csv_table(const std::filesystem::path& path, std::span<const std::string> wanted = {});
CsvTable csv_table_in(std::string_view text, const std::string& name, std::span<const std::string> wanted = {});

}  // namespace hone
