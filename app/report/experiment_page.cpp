#include "app/report/experiment_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "app/report/text.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::array experiments = {"table1", "fig1", "fig2", "fig3", "claims", "best"};

// Replaces pairs of Markdown's marks, such as **, around a text.
std::string replaced(const std::string& text, const std::string& mark, const std::string& open,
                     const std::string& close) {
  std::string result;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = text.find(mark, at), first = begin + mark.size();
    const std::size_t end = begin == text.npos ? begin : text.find(mark, first);
    if (end == text.npos) return result + text.substr(at);
    const bool pair = end > first && text[first] != ' ' && text[end - 1] != ' ';
    result += text.substr(at, begin - at) + (pair ? open + text.substr(first, end - first) + close : mark);
    at = pair ? end + mark.size() : first;
  }
}

// Escaped text with its emphasis and code as HTML.
std::string inline_html(const std::string& text) {
  return replaced(replaced(replaced(html_text(text), "`", "<code>", "</code>"), "**", "<strong>", "</strong>"), "*",
                  "<em>", "</em>");
}

// The same without marks.
std::string plain(const std::string& text) {
  return replaced(replaced(replaced(text, "`", "", ""), "**", "", ""), "*", "", "");
}

// A range stays on one line, and a minus sign is one.
std::string typeset(std::string cell) {
  constexpr std::string_view loose = " ± ", tight = "\u00a0±\u00a0", minus = "−";
  for (std::size_t at = 0; (at = cell.find(loose, at)) != cell.npos; at += tight.size())
    cell.replace(at, loose.size(), tight);
  for (std::size_t at = 0; (at = cell.find('-', at)) != cell.npos; ++at)
    if ((at == 0 || cell[at - 1] == ' ') && at + 1 < cell.size() && cell[at + 1] >= '0' && cell[at + 1] <= '9')
      cell.replace(at, 1, minus);
  return cell;
}

// "| a | b |" → a, b
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream text(line.substr(1));
  for (std::string cell; std::getline(text, cell, '|');) {
    const auto first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : typeset(plain(cell.substr(first, last - first + 1))));
  }
  return cells;
}

// The Markdown that our own reports use: headings, paragraphs, tables; blocks of code are left out.
class MarkdownWriter {
 public:
  MarkdownWriter(Page& page) : page_(page) {}

  void write(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("```")) code_ = !code_;
      if (code_ || line.starts_with("```") || line == "Computed by" || line.starts_with("Picture: ")) continue;
      if (line.starts_with('|')) {
        end_paragraph();
        if (!line.starts_with("|--")) rows_.push_back(cells_of(line));
        continue;
      }
      end_table();
      if (line.empty() || line.starts_with('#')) end_paragraph();
      if (const auto hashes = line.find_first_not_of('#'); line.starts_with('#') && hashes != std::string::npos)
        page_.heading(hashes == 1 ? 2 : 3, plain(line.substr(line.find_first_not_of(' ', hashes))));
      else if (!line.empty())
        paragraph_ += (paragraph_.empty() ? "" : " ") + line;
    }
    end_table();
    end_paragraph();
  }

 private:
  void end_table() {
    if (rows_.size() > 1) page_.table(rows_);
    rows_.clear();
  }
  void end_paragraph() {
    if (!paragraph_.empty()) page_.html("<p>" + inline_html(paragraph_) + "</p>\n");
    paragraph_.clear();
  }

  Page& page_;
  std::vector<std::vector<std::string>> rows_;
  std::string paragraph_;
  bool code_ = false;
};

}  // namespace

bool has_experiments(const fs::path& folder) {
  std::error_code ignored;
  return std::ranges::any_of(
      experiments, [&](const char* name) { return fs::exists(folder / (std::string(name) + ".md"), ignored); });
}

bool write_experiments(const fs::path& folder, Page& page) {
  bool any = false;
  std::error_code ignored;
  for (const std::string name : experiments) {
    const fs::path text = folder / (name + ".md"), picture = folder / "figures" / (name + ".svg");
    if (!fs::exists(text, ignored)) continue;
    any = true;
    MarkdownWriter(page).write(read_file(text));
    if (!fs::exists(picture, ignored)) continue;
    page.svg_figure(picture, fmt::format("{}; the table above has its numbers.", name), "");
  }
  return any;
}

}  // namespace hone
