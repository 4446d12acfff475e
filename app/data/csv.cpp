#include "app/data/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "hone/base/error.hpp"
#include "hone/base/spelling.hpp"

namespace hone {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool in_quotes(std::string_view text) { return text.size() >= 2 && text.front() == '"' && text.back() == '"'; }

std::string_view unquoted(std::string_view text) { return in_quotes(text) ? text.substr(1, text.size() - 2) : text; }

// The next separator after `at`, except for one inside quotes (where two quotes stand for one); the line's end if there
// is none.
std::size_t end_of_cell(std::string_view line, std::size_t at, char separator) {
  const std::size_t first = line.find_first_not_of(' ', at);
  if (first != std::string_view::npos && line[first] == '"') {
    std::size_t closed = line.find('"', first + 1);
    while (closed != std::string_view::npos && line.substr(closed, 2) == "\"\"") closed = line.find('"', closed + 2);
    const std::size_t after = closed == std::string_view::npos ? closed : line.find_first_not_of(' ', closed + 1);
    if (closed != std::string_view::npos && (after == std::string_view::npos || line[after] == separator))
      return std::min(after, line.size());
  }
  return std::min(line.find(separator, at), line.size());
}

bool is_missing(std::string_view cell) {
  for (const std::string_view word : {"", "NA", "N/A", "nan", "NaN", "NAN", "null", "NULL", "?"})
    if (cell == word) return true;
  return false;
}

// A number, or a truth value as pandas and R write it.
bool parse_cell(std::string_view cell, double& value) {
  if (parse_number(cell, value)) return true;
  for (const std::string_view word : {"True", "TRUE", "true", "False", "FALSE", "false"})
    if (cell == word) {
      value = word.front() == 'T' || word.front() == 't';
      return true;
    }
  return false;
}

// Whether a cell would be a number without its commas, or with a point for its comma.
bool has_commas(std::string_view cell) {
  double ignored;
  std::string digits(cell);
  return std::erase(digits, ',') > 0 && parse_number(digits, ignored);
}

// Infinity, or a number beyond the largest double.
bool is_too_large(std::string_view cell) {
  if (!cell.empty() && (cell.front() == '-' || cell.front() == '+')) cell.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return end == cell.data() + cell.size() && (error == std::errc::result_out_of_range || std::isinf(value));
}

// 0, 1, 2, …: the names that pandas gives to columns without names. Two numbers, 0 and 1, may as well be a datum.
bool counts_columns(const std::vector<std::string_view>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i] != std::to_string(i)) return false;
  return cells.size() > 2;
}

}  // namespace

CsvHeader csv_header_named(std::string_view name) {
  if (name == "auto") return CsvHeader::automatic;
  if (name == "yes" || name == "no") return name == "yes" ? CsvHeader::yes : CsvHeader::no;
  throw InputError(fmt::format("header '{}': expected one of auto, yes, no", name));
}

CsvReader::CsvReader(ByteSource& source, CsvWanted wanted) : lines_(source), wanted_(std::move(wanted)) {
  fill(1);
  if (table_.rows == 0) lines_.fail("expected rows of numbers, found none");
}

CsvRows CsvReader::next(int most) {
  fill(most);
  table_.cols = cols();
  return std::exchange(table_, {});
}

void CsvReader::fill(int rows) {
  while (table_.rows < rows && row()) {
  }
}

bool CsvReader::row() {
  std::uint64_t blank = 0;  // the first of blank lines that nothing has followed so far
  while (lines_.next(line_)) {
    if (lines_.number() == 1 && line_.starts_with("\xEF\xBB\xBF")) line_.erase(0, 3);
    if (lines_.number() == 1 && (line_.starts_with("\xFF\xFE") || line_.starts_with("\xFE\xFF")))
      lines_.fail("expected UTF-8, found UTF-16; save the file as UTF-8");
    if (line_.find('\r') != std::string::npos)
      lines_.fail("a carriage return inside the line; expected lines that end in LF or CR LF");
    if (trimmed(line_).empty() && (separator_ != '\t' || line_.empty())) {
      if (blank == 0) blank = lines_.number();
      continue;
    }
    if (blank > 0) lines_.fail(fmt::format("line {} is empty; expected one datum per line", blank));
    if (separator_ == 0) begin(line_);
    split(line_);
    if (lines_.number() == 1 && is_header()) {
      take_names();
      continue;
    }
    add();
    return true;
  }
  return false;
}

void CsvReader::begin(const std::string& line) {
  std::ptrdiff_t most = -1;
  for (const char candidate : {',', ';', '\t'}) {
    std::ptrdiff_t count = 0;
    bool quoted = false;
    for (const char c : line) {
      quoted = quoted != (c == '"');
      count += !quoted && c == candidate;
    }
    if (count <= most) continue;
    most = count;
    separator_ = candidate;
  }
  std::ptrdiff_t cols = 1;
  for (std::size_t at = 0; (at = end_of_cell(line, at, separator_)) < line.size(); ++at) ++cols;
  if (cols > std::numeric_limits<int>::max()) lines_.fail("too many columns");
  cols_ = static_cast<int>(cols);
}

void CsvReader::split(std::string_view line) {
  cells_.clear();
  for (std::size_t at = 0;;) {
    const std::size_t end = end_of_cell(line, at, separator_);
    const std::string_view cell = trimmed(line.substr(at, end - at));
    if (cell.starts_with('"') && !in_quotes(cell))
      lines_.fail(
          fmt::format("column {}: a quote that does not end in its cell, which has no line breaks", cells_.size() + 1));
    cells_.push_back(unquoted(cell));
    if (end == line.size()) break;
    at = end + 1;
  }
  if (cells_.size() != static_cast<std::size_t>(cols_))
    lines_.fail(fmt::format("expected {} columns, as in the first line, found {}", cols_, cells_.size()));
}

// Names: all cells are texts, and not all of them stand for missing values. Or the columns are counted.
bool CsvReader::is_header() const {
  if (wanted_.header != CsvHeader::automatic) return wanted_.header == CsvHeader::yes;
  double ignored;
  if (std::ranges::any_of(cells_, [&](std::string_view cell) { return parse_cell(cell, ignored); }) &&
      !counts_columns(cells_))
    return false;
  return !std::ranges::all_of(cells_, is_missing);
}

void CsvReader::take_names() {
  names_.assign(cells_.begin(), cells_.end());
  const auto label = wanted_.label.empty() ? names_.end() : std::ranges::find(names_, wanted_.label);
  if (label != names_.end()) label_ = static_cast<std::size_t>(label - names_.begin());
  if (label_ && names_.size() == 1) lines_.fail("expected columns of numbers beside that of the labels");
}

void CsvReader::add() {
  if (total_ == std::numeric_limits<int>::max()) lines_.fail("too many lines");
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (i == label_) {
      table_.labels.emplace_back(cells_[i]);
      continue;
    }
    const bool missing = wanted_.missing == Missing::ignored && is_missing(cells_[i]);
    if (!missing && (!parse_cell(cells_[i], value) || !std::isfinite(value))) refuse(i);
    table_.values.push_back(value);
  }
  ++table_.rows;
  ++total_;
}

// What to do about a cell that is no number.
std::string CsvReader::way_out(std::size_t i) const {
  if (cols_ == 1 && cells_[i].find_first_of(" |") != std::string_view::npos)
    return "; columns are separated by commas, semicolons or tabs";
  if (is_too_large(cells_[i])) return "";
  if (has_commas(cells_[i])) return "; expected a decimal point, and no other commas, as in 1234.5";
  if (lines_.number() == 1 && wanted_.header == CsvHeader::automatic)
    return "; a header line has no numbers, unless header = \"yes\"";
  if (names_.empty()) return wanted_.header == CsvHeader::no ? "; header = \"no\" says that line 1 holds numbers" : "";
  if (wanted_.label.empty()) return fmt::format("; if the column holds names: labels = \"{}\"", shown(names_[i]));
  if (label_) return "";
  const std::vector<std::string> names(names_.begin(), names_.end());
  return fmt::format("; there is no column '{}', which labels names{}", shown(wanted_.label),
                     did_you_mean(wanted_.label, names));
}

void CsvReader::refuse(std::size_t i) const {
  const std::string where =
      names_.empty() ? fmt::format("column {}", i + 1) : fmt::format("column {} ({})", i + 1, shown(names_[i]));
  if (is_missing(cells_[i]))
    lines_.fail(fmt::format("{}: a missing value; fill it in, or leave the row out{}", where, missing_hint));
  lines_.fail(fmt::format("{}: expected a finite number, found '{}'{}", where, shown(cells_[i]), way_out(i)));
}

CsvRows read_csv(ByteSource& source, const CsvWanted& wanted) {
  CsvReader reader(source, wanted);
  CsvRows rows = reader.next(std::numeric_limits<int>::max());
  reader.next(1);  // refuses what is too many
  return rows;
}

}  // namespace hone
