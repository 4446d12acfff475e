#include "app/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "app/report/text.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

constexpr std::string_view style = R"(
:root {
  color-scheme: light dark;
  --ink: #1c2128; --soft: #57606a; --line: #d5dae0; --ground: #fff; --card: #f6f8fa;
  --link: #0b5cad; --warn: #9a5b00; --warn-ground: #fff6e5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e7eb; --soft: #9aa4b0; --line: #363d47; --ground: #14171b; --card: #1b1f25;
    --link: #7db7f5; --warn: #f0b45b; --warn-ground: #2a2114;
  }
}
* { box-sizing: border-box }
body {
  margin: 0 auto; max-width: 76rem; padding: 1.5rem 1.25rem 4rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: break-word;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .75rem }
h2 { font-size: 1.3rem; margin: 2.25rem 0 .6rem; padding-top: .9rem; border-top: 1px solid var(--line) }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .5rem }
p { margin: .5rem 0; max-width: 48rem }
ul { margin: .5rem 0; padding-left: 1.3rem; max-width: 60rem }
li { margin: .2rem 0 }
a { color: var(--link) }
.verdict p { font-size: 1.05rem }
.badge {
  display: inline-block; border-radius: 1rem; padding: .1rem .8rem; margin: .15rem .4rem .15rem 0; font-weight: 600;
  color: var(--badge); border: 2px solid var(--badge);
}
.good { --badge: #18794e } .doubtful { --badge: #9a5b00 } .bad { --badge: #c62828 } .open { --badge: #57606a }
@media (prefers-color-scheme: dark) {
  .good { --badge: #4cc38a } .doubtful { --badge: #f0b45b } .bad { --badge: #ff8a80 } .open { --badge: #9aa4b0 }
}
.note { border-left: .3rem solid var(--warn); background: var(--warn-ground); padding: .6rem 1rem; margin: 1rem 0 }
.note strong { color: var(--warn) }
.note ul { margin: .3rem 0 0 }
.wide { overflow-x: auto; margin: .75rem 0 }
table { border-collapse: collapse; font-size: .92rem }
th, td { padding: .28rem .9rem .28rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
td { font-variant-numeric: tabular-nums; min-width: 6.5rem; max-width: 26rem; overflow-wrap: anywhere }
.n { text-align: right; white-space: nowrap }
th[scope=row] { min-width: 7.5rem }
thead th { border-bottom: 2px solid var(--line) }
tbody th { font-weight: 500; color: var(--soft) }
.caption, figcaption, footer { color: var(--soft); font-size: .85rem }
.caption { margin-top: -.3rem }
.figures {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); gap: 1rem; margin: 1rem 0;
  align-items: start;
}
figure { margin: 0; padding: .75rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem }
figure img { display: block; width: 100%; height: auto }
@media (prefers-color-scheme: dark) { figure:not(.images) img { filter: brightness(1.25) } }
figcaption { margin-top: .5rem }
.images img { image-rendering: pixelated }
.images:only-child { grid-column: 1 / -1; max-width: 56rem }
.images div + div { margin-top: .6rem }
.images span { display: block; font-size: .85rem; color: var(--soft); margin-bottom: .15rem }
.settings {
  columns: 20rem; list-style: none; padding: 0; max-width: none;
  font: .82rem/1.6 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
}
.settings li { margin: 0; break-inside: avoid }
.settings b { font-weight: 400; color: var(--soft) }
.files { columns: 18rem; max-width: none }
footer { margin-top: 3rem }
@media (max-width: 48rem) { td.l { min-width: 22rem } }
@media (max-width: 30rem) {
  body { padding: 1rem .9rem 3rem }
  h1 { font-size: 1.4rem }
  .figures { gap: .75rem }
  figure { padding: .4rem }
}
@media print {
  @page { margin: 14mm }
  body { max-width: none; padding: 0; font-size: 10.5pt }
  h2, h3 { break-after: avoid }
  figure, tr, .note { break-inside: avoid }
  figure { background: none }
  .wide { overflow: visible }
  .figures { grid-template-columns: 1fr 1fr }
  a { color: inherit }
}
)";

// For gnuplot's SVG: no background, not even around points, and ink that is readable on a dark page.
constexpr std::string_view svg_style =
    "<style>#gnuplot_canvas>rect,use[color='#FFFFFF']{fill:none;color:transparent}"
    "@media (prefers-color-scheme:dark){[stroke='black']{stroke:#d4d9df}[fill='black']{fill:#d4d9df}"
    "[color='black']{color:#d4d9df}}</style>";

std::string picture_html(std::string_view type, const std::string& bytes, const std::string& alternative) {
  return fmt::format("<img alt=\"{}\" src=\"data:{};base64,{}\">", html_text(alternative), type, base64(bytes));
}

// A cell that stands for a number that is not there.
bool is_gap(std::string_view cell) {
  return cell.empty() || cell == "–" || cell == "—" || cell == "-" || cell == "no data" || cell == "not done" ||
         cell == "(picture)";
}

// Whether cells hold numbers, with standard errors or signs, and nothing else but gaps.
bool are_numeric(const std::vector<std::string>& cells) {
  bool any = false;
  for (const std::string& cell : cells) {
    if (is_gap(cell)) continue;
    bool digit = false;
    for (const char c : cell) digit = digit || (c >= '0' && c <= '9');
    const bool letters = std::ranges::any_of(cell, [](unsigned char c) { return std::isalpha(c) && c != 'e'; });
    if (!digit || letters || cell.find(", ") != std::string::npos) return false;
    any = true;
  }
  return any;
}

// The cells of a column or a row below or right of its header.
std::vector<std::string> column_of(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
  std::vector<std::string> cells;
  for (std::size_t r = 1; r < rows.size(); ++r)
    if (column < rows[r].size()) cells.push_back(rows[r][column]);
  return cells;
}
std::vector<std::string> row_of(const std::vector<std::string>& row) {
  return {row.begin() + std::min<std::ptrdiff_t>(1, std::ssize(row)), row.end()};
}

}  // namespace

void Page::heading(int level, const std::string& text) {
  body_ += fmt::format("<h{0}>{1}</h{0}>\n", level, html_text(text));
}

void Page::paragraph(const std::string& text) { body_ += fmt::format("<p>{}</p>\n", html_text(text)); }

void Page::list(const std::vector<std::string>& items) {
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += fmt::format("<li>{}</li>\n", html_text(item));
  body_ += "</ul>\n";
}

void Page::note(const std::string& title, const std::vector<std::string>& items) {
  body_ += fmt::format("<div class=\"note\" role=\"note\"><strong>{}</strong>\n", html_text(title));
  list(items);
  body_ += "</div>\n";
}

void Page::badge(Badge kind, const std::string& text) {
  static constexpr std::string_view names[] = {"good", "doubtful", "bad", "open"};
  static constexpr std::string_view signs[] = {"✓", "!", "✗", "…"};
  const auto i = static_cast<std::size_t>(kind);
  body_ += fmt::format("<span class=\"badge {}\"><span aria-hidden=\"true\">{} </span>{}</span>\n", names[i], signs[i],
                       html_text(text));
}

void Page::table(const std::vector<std::vector<std::string>>& rows, const std::string& caption) {
  constexpr std::size_t long_text = 100;  // bytes; such a cell keeps its width where the page is narrow
  std::vector<bool> numeric;
  for (std::size_t c = 0; !rows.empty() && c < rows.front().size(); ++c)
    numeric.push_back(c > 0 && are_numeric(column_of(rows, c)));
  const bool by_rows = std::ranges::count(numeric, true) == 0;  // a row of numbers per run, or columns of numbers
  // A region that the keyboard can reach, because it may scroll.
  body_ += "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"table\"><table>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const bool numbers = by_rows && are_numeric(row_of(rows[r]));
    body_ += r == 0 ? "<thead><tr>" : r == 1 ? "<tbody>\n<tr>" : "<tr>";
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      const std::string_view open = r == 0 ? "th scope=\"col\"" : c == 0 ? "th scope=\"row\"" : "td";
      const bool right = (c < numeric.size() && numeric[c]) || (r > 0 && c > 0 && numbers);
      const bool is_long = r > 0 && c > 0 && rows[r][c].size() > long_text;
      body_ += fmt::format("<{}{}>{}</{}>", open,
                           right     ? " class=\"n\""
                           : is_long ? " class=\"l\""
                                     : "",
                           html_text(rows[r][c]), open.substr(0, 2));
    }
    body_ += r == 0 ? "</tr></thead>\n" : "</tr>\n";
  }
  body_ += rows.size() > 1 ? "</tbody></table></div>\n" : "</table></div>\n";
  if (!caption.empty()) body_ += fmt::format("<p class=\"caption\">{}</p>\n", html_text(caption));
}

void Page::svg_figure(const std::filesystem::path& file, const std::string& alternative, const std::string& caption) {
  std::string svg = read_file(file);
  const auto open = svg.find("<svg");
  const auto end = open == svg.npos ? svg.npos : svg.find('>', open);
  if (end == svg.npos) throw InputError(fmt::format("{}: not an SVG file", file.string()));
  svg.insert(end + 1, svg_style);
  body_ += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n",
                       picture_html("image/svg+xml", svg, alternative), html_text(caption));
}

void Page::image_rows(const std::vector<ImageRow>& rows, const std::string& caption) {
  std::string html = "<figure class=\"images\">";
  for (const ImageRow& row : rows) {
    const std::string png = read_file(row.file);
    if (!png.starts_with("\x89PNG\r\n")) throw InputError(fmt::format("{}: not a PNG file", row.file.string()));
    html += fmt::format("<div><span>{}</span>{}</div>\n", html_text(row.label),
                        picture_html("image/png", png, row.alternative));
  }
  body_ += html + fmt::format("<figcaption>{}</figcaption></figure>\n", html_text(caption));
}

std::string Page::text() const {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<h1>{}</h1>\n{}</body>\n</html>\n",
      html_text(title_), style, html_text(title_), body_);
}

std::string link_html(const std::filesystem::path& file, const std::filesystem::path& page_folder,
                      const std::string& text) {
  const auto from = std::filesystem::absolute(page_folder).lexically_normal(),
             to = std::filesystem::absolute(file).lexically_normal();
  return fmt::format("<a href=\"{}\">{}</a>", html_text("./" + url_path(to.lexically_relative(from).generic_string())),
                     html_text(text));
}

}  // namespace hone
