#include "app/report/experiment_page.hpp"

#include <fmt/format.h>

#include <sstream>

#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

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
    cells.push_back(first == std::string::npos ? "" : typeset(cell.substr(first, last - first + 1)));
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
        page_.heading(hashes == 1 ? 2 : 3, line.substr(line.find_first_not_of(' ', hashes)));
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
    if (!paragraph_.empty()) page_.paragraph(paragraph_);
    paragraph_.clear();
  }

  Page& page_;
  std::vector<std::vector<std::string>> rows_;
  std::string paragraph_;
  bool code_ = false;
};

}  // namespace

bool write_experiments(const fs::path& folder, Page& page) {
  bool any = false;
  std::error_code ignored;
  for (const std::string name : {"table1", "fig1", "fig2", "fig3", "claims", "best"}) {
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
