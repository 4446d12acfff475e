#include "app/report/csv_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

constexpr std::size_t most_told = 3;  // faults per file that are listed one by one

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const auto comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == line.npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_in(std::string_view cell) {
  if (cell.empty()) return std::nan("");
  double number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (error != std::errc() || end != cell.data() + cell.size()) return {};
  return number;
}

class Reader {
 public:
  Reader(std::string file, std::span<const std::string> wanted) : file_(std::move(file)), wanted_(wanted) {}

  void line(std::string_view text, bool whole) {
    ++number_;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty() || text.starts_with('#')) return;
    if (!whole) return fault("is cut off");
    const auto cells = cells_of(text);
    if (width_ == 0) return header(cells);
    if (cells.size() != width_) return fault(fmt::format("has {} cells; expected {}", cells.size(), width_));
    std::vector<double> row;
    for (const std::size_t i : kept_) {
      const auto value = number_in(cells[i]);
      if (!value) return fault("holds something that is not a number");
      row.push_back(*value);
    }
    for (std::size_t k = 0; k < row.size(); ++k) table_.columns[k].push_back(row[k]);
  }

  CsvTable finished() {
    if (width_ == 0) throw InputError(fmt::format("{}: names no columns", file_));
    if (faults_ > most_told)
      table_.faults.push_back(fmt::format("{}: {} more lines like these are left out", file_, faults_ - most_told));
    return std::move(table_);
  }

 private:
  void header(const std::vector<std::string_view>& cells) {
    width_ = cells.size();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!wanted_.empty() && std::ranges::find(wanted_, cells[i]) == wanted_.end()) continue;
      kept_.push_back(i);
      table_.names.emplace_back(cells[i]);
    }
    table_.columns.resize(kept_.size());
  }

  void fault(const std::string& what) {
    if (++faults_ <= most_told)
      table_.faults.push_back(fmt::format("{}, line {}: {}; it is left out", file_, number_, what));
  }

  std::string file_;
  std::span<const std::string> wanted_;
  CsvTable table_;
  std::vector<std::size_t> kept_;
  std::size_t width_ = 0, number_ = 0, faults_ = 0;
};

}  // namespace

const std::vector<double>* CsvTable::column(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? nullptr : &columns[static_cast<std::size_t>(found - names.begin())];
}

CsvTable read_csv_table(const std::filesystem::path& path, std::span<const std::string> wanted) {
  return csv_table_in(read_file(path), path.filename().string(), wanted);
}

CsvTable csv_table_in(std::string_view rest, const std::string& name, std::span<const std::string> wanted) {
  Reader reader(name, wanted);
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    reader.line(rest.substr(0, end), end != rest.npos);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  return reader.finished();
}

}  // namespace hone
