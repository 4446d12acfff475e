#include "app/run/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace hone {

int terminal_width(std::FILE* out) {
  constexpr int least = 40, usual = 80;
  winsize size = {};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return std::max<int>(least, size.ws_col);
  const char* const columns = std::getenv("COLUMNS");
  const int told = columns ? std::atoi(columns) : 0;
  return told > 0 ? std::max(least, told) : usual;
}

int width_of(const std::string& text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string cut_to(const std::string& text, int width) {
  if (width_of(text) <= width) return text;
  std::string result;
  int taken = 0;
  for (const char c : text) {
    if ((c & 0xc0) != 0x80 && ++taken >= width) break;
    result += c;
  }
  return result + "…";
}

std::string wrapped(const std::string& first, const std::string& text, int width) {
  const int indent = width_of(first);
  std::string result = first, line;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && indent + width_of(line) + 1 + width_of(word) > width) {
      result += line + "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line + "\n";
}

std::string fitted_help(const std::string& page, int width) {
  std::string result;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = std::min(page.find('\n', at), page.size());
    const std::string line = page.substr(at, end - at);
    at = end + 1;
    const std::size_t text = std::min(line.find_first_not_of(' '), line.size()), gap = line.find("  ", text);
    const std::size_t column = gap == std::string::npos ? text : line.find_first_not_of(' ', gap);
    if (width_of(line) <= width || column == std::string::npos || static_cast<int>(column) > 2 * width / 3)
      result += line + "\n";
    else
      result += wrapped(line.substr(0, column), line.substr(column), width);
  }
  return result;
}

}  // namespace hone
