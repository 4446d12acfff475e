#include "app/run/draws_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// The cells of a line; a comma inside quotes or brackets is part of a name.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  int depth = 0;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size()) {
      if (line[i] == '"') quoted = !quoted;
      if (line[i] == '[') ++depth;
      if (line[i] == ']') --depth;
      if (line[i] != ',' || quoted || depth > 0) continue;
    }
    std::string_view cell = trimmed(line.substr(begin, i - begin));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
    cells.push_back(cell);
    begin = i + 1;
  }
  return cells;
}

struct Table {
  std::string file;
  std::vector<std::string> names;
  std::vector<double> values;  // row after row
  std::size_t rows = 0;
  std::map<std::string, std::string> comments;  // "save_warmup" → "1"
  bool refined = false;                         // hone's refined draws
};

// "#     num_warmup = 1000 (Default)"
void note_comment(std::string_view line, Table& table) {
  line.remove_prefix(1);
  if (line.find(" refined ") != std::string_view::npos) table.refined = true;
  const std::size_t at = line.find('=');
  if (at == std::string_view::npos) return;
  std::string_view value = trimmed(line.substr(at + 1));
  value = value.substr(0, value.find(' '));
  table.comments.emplace(trimmed(line.substr(0, at)), value);
}

void read_row(std::string_view line, const std::string& where, Table& table) {
  const auto cells = cells_of(line);
  if (cells.size() != table.names.size())
    throw InputError(fmt::format("{}: {} values for {} names", where, cells.size(), table.names.size()));
  for (std::size_t k = 0; k < cells.size(); ++k) {
    std::string_view cell = cells[k];
    if (cell.starts_with('+')) cell.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error == std::errc::result_out_of_range) value = 0;  // smaller than any double
    if (error == std::errc::invalid_argument || end != cell.data() + cell.size())
      throw InputError(fmt::format("{}: '{}' of {} is not a number", where, cells[k], table.names[k]));
    table.values.push_back(value);
  }
  ++table.rows;
}

Table table_of(std::string_view text, const std::string& file) {
  Table table{.file = file, .names = {}, .values = {}, .rows = 0, .comments = {}, .refined = false};
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.starts_with('#')) {
      note_comment(line, table);
    } else if (!line.empty() && table.names.empty()) {
      for (const std::string_view cell : cells_of(line)) table.names.push_back(stan_name(std::string(cell)));
    } else if (!line.empty()) {
      read_row(line, fmt::format("{}:{}", file, number), table);
    }
  }
  if (table.rows == 0)
    throw InputError(fmt::format("{}: has no draws; expected a CSV file with a line of names", file));
  return table;
}

int whole_number(const Table& table, const char* key, int otherwise) {
  const auto found = table.comments.find(key);
  if (found == table.comments.end()) return otherwise;
  int value = otherwise;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return value;
}

bool says(const Table& table, const char* key, std::initializer_list<std::string_view> values) {
  const auto found = table.comments.find(key);
  return found != table.comments.end() && std::ranges::find(values, found->second) != values.end();
}

// The number of rows at the beginning that are not draws.
std::size_t rows_before(const Table& table) {
  if (says(table, "method", {"variational"})) return 1;  // the mean of the approximation
  if (!says(table, "save_warmup", {"1", "true"})) return 0;
  const std::int64_t thin = std::max(1, whole_number(table, "thin", 1));
  const std::int64_t warmup = std::max(0, whole_number(table, "num_warmup", 1000));
  return static_cast<std::size_t>((warmup + thin - 1) / thin);
}

// The column with log q of the draws; the number of columns if there is none. Refined draws are no longer q's, and
// the column does not belong to draws that pathfinder resampled.
std::size_t log_q_column(const Table& table) {
  if (table.refined || says(table, "psis_resample", {"1", "true"})) return table.names.size();
  for (const char* name : {"log_q__", "log_g__", "lp_approx__"}) {
    const auto found = std::ranges::find(table.names, name);
    if (found != table.names.end()) return static_cast<std::size_t>(found - table.names.begin());
  }
  return table.names.size();
}

GivenDraws draws_of(const std::vector<Table>& tables) {
  GivenDraws result{.names = tables.front().names, .values = {}, .log_q = {}};
  const std::size_t width = result.names.size();
  std::vector<double> all;
  bool known = true;  // log q
  for (const Table& table : tables) {
    if (table.names != result.names)
      throw InputError(fmt::format("{}: has other names than {}", table.file, tables.front().file));
    const std::size_t first = std::min(table.rows, rows_before(table));
    all.insert(all.end(), table.values.begin() + static_cast<std::ptrdiff_t>(first * width), table.values.end());
    const std::size_t column = log_q_column(table);
    known = known && column < width;
    for (std::size_t row = first; row < table.rows && known; ++row)
      result.log_q.push_back(table.values[row * width + column]);
  }
  if (!known) result.log_q.clear();
  result.values = Matrix<double>(static_cast<int>(width), static_cast<int>(all.size() / width));
  std::ranges::copy(all, result.values.view().flat().begin());
  return result;
}

}  // namespace

std::string stan_name(std::string name) {
  if (name.empty() || name.back() != ']' || name.find('[') == std::string::npos) return name;
  name.pop_back();
  std::erase(name, ' ');
  std::ranges::replace(name, '[', '.');
  std::ranges::replace(name, ',', '.');
  return name;
}

GivenDraws read_csv_draws(const std::vector<fs::path>& files) {
  std::vector<Table> tables;
  for (const fs::path& file : files) tables.push_back(table_of(read_file(file), file.string()));
  return draws_of(tables);
}

GivenDraws csv_draws_in(std::string_view text, const std::string& name) { return draws_of({table_of(text, name)}); }

}  // namespace hone
