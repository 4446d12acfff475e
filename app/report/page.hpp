#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hone {

// A self-contained HTML page, built piece by piece. It contains its pictures and styles, has no scripts, and its
// content security policy keeps a browser from fetching anything. `html` arguments are used as they are; all others are
// escaped.
class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  void heading(int level, const std::string& text);
  void paragraph(const std::string& text);
  void note(const std::string& title, const std::vector<std::string>& items);  // a highlighted box
  void list(const std::vector<std::string>& items);
  void html(const std::string& html) { body_ += html; }

  // A word with a colour and a sign: ✓, !, ✗ or …
  enum class Badge { good, doubtful, bad, open };
  void badge(Badge kind, const std::string& text);

  // The first row and the first column are headers. Columns and rows of numbers are aligned right. Wide tables scroll
  // inside themselves.
  void table(const std::vector<std::vector<std::string>>& rows, const std::string& caption = "");

  // Figures stand side by side if the page is wide enough: open, add, close.
  void open_figures() { body_ += "<div class=\"figures\">\n"; }
  void close_figures() { body_ += "</div>\n"; }

  // A picture with a description and a caption. gnuplot's SVG files get colours for dark pages. Throws InputError if
  // the file cannot be read.
  void svg_figure(const std::filesystem::path& file, const std::string& alternative, const std::string& caption);

  // A figure of several rows of small images: for each row a label, a PNG file and a description.
  struct ImageRow {
    std::string label;
    std::filesystem::path file;
    std::string alternative;
  };
  void image_rows(const std::vector<ImageRow>& rows, const std::string& caption);

  const std::string& body() const { return body_; }
  std::string text() const;  // the whole page

 private:
  std::string title_, body_;
};

// An <a> to a file, relative to the folder that the page is in.
std::string link_html(const std::filesystem::path& file, const std::filesystem::path& page_folder,
                      const std::string& text);

}  // namespace hone
