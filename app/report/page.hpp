#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hone {

// A self-contained HTML page, put together piece by piece: pictures and styles are inside, it has no scripts, and its
// own rule keeps a browser from fetching anything. Texts given as `html` are taken as they are; all others are escaped.
class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  void heading(int level, const std::string& text);
  void paragraph(const std::string& text);
  void note(const std::string& title, const std::vector<std::string>& items);  // a box that stands out
  void list(const std::vector<std::string>& items);
  void html(const std::string& html) { body_ += html; }

  // The first row and the first column are headers. Wide tables scroll inside themselves.
  void table(const std::vector<std::vector<std::string>>& rows, const std::string& caption = "");

  // Figures stand side by side where there is room: open, add, close.
  void open_figures() { body_ += "<div class=\"figures\">\n"; }
  void close_figures() { body_ += "</div>\n"; }

  // A picture with what it shows in words, and a caption. An SVG file of gnuplot's gets colours for dark pages. Throws
  // InputError where the file cannot be read.
  void svg_figure(const std::filesystem::path& file, const std::string& alternative, const std::string& caption);

  // Pictures of one row of small images each, under each other in one figure: a label, a PNG file, what it shows.
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
