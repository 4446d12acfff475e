#include "app/report/terminal_text.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <vector>

namespace hone {
namespace {

using Row = std::vector<std::string>;

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Words in lines of at most `width` characters, as far as words allow.
std::vector<std::string> broken(const std::string& text, std::size_t width) {
  std::vector<std::string> lines = {""};
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::string& line = lines.back();
    if (line.empty())
      line = word;
    else if (characters(line) + 1 + characters(word) <= width)
      line += " " + word;
    else
      lines.push_back(word);
  }
  return lines;
}

std::size_t longest_word(const std::string& text) {
  std::size_t most = 1;
  std::istringstream words(text);
  for (std::string word; words >> word;) most = std::max(most, characters(word));
  return most;
}

Row cells_of(const std::string& line) {
  Row cells;
  std::istringstream text(line.substr(1));
  for (std::string cell; std::getline(text, cell, '|');) {
    const auto first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

// The widest columns give way first, but never below their longest word.
std::vector<std::size_t> widths_of(const std::vector<Row>& rows, std::size_t columns) {
  std::vector<std::size_t> width, least;
  for (const Row& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c == width.size()) width.push_back(1), least.push_back(1);
      width[c] = std::max(width[c], characters(row[c]));
      least[c] = std::max(least[c], longest_word(row[c]));
    }
  while (std::reduce(width.begin(), width.end()) + 2 * (width.size() - 1) > columns) {
    std::size_t widest = width.size();
    for (std::size_t c = 0; c < width.size(); ++c)
      if (width[c] > least[c] && (widest == width.size() || width[c] > width[widest])) widest = c;
    if (widest == width.size()) break;
    --width[widest];
  }
  return width;
}

std::string table_text(const std::vector<Row>& rows, std::size_t columns) {
  const std::vector<std::size_t> width = widths_of(rows, columns);
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      cells.push_back(broken(rows[r][c], width[c]));
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t i = 0; i < lines; ++i) {
      std::string line;
      for (std::size_t c = 0; c < cells.size(); ++c) {
        const std::string part = i < cells[c].size() ? cells[c][i] : "";
        line += part + std::string(width[c] - std::min(width[c], characters(part)) + 2, ' ');
      }
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    if (r == 0)
      text +=
          std::string(std::min(columns, std::reduce(width.begin(), width.end()) + 2 * (width.size() - 1)), '-') + "\n";
  }
  return text;
}

}  // namespace

std::string terminal_text(const std::string& markdown, std::size_t columns) {
  std::string text;
  std::vector<Row> rows;
  std::istringstream lines(markdown);
  const auto end_table = [&] {
    if (!rows.empty()) text += table_text(rows, columns);
    rows.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('|')) {
      if (!line.starts_with("|--")) rows.push_back(cells_of(line));
      continue;
    }
    end_table();
    for (const std::string& part : broken(line, columns)) text += part + "\n";
  }
  end_table();
  return text;
}

}  // namespace hone
