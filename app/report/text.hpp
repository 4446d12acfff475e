#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hone/base/statistics.hpp"

namespace hone {

// Escape text from files for a page or a gnuplot script, so that it stays text whatever it holds. Bytes that are not
// UTF-8, and control characters, become U+FFFD.
std::string html_text(std::string_view text);     // for content and for attributes in quotes
std::string gnuplot_text(std::string_view text);  // with its quotes; for keys and titles that are not "enhanced"
std::string url_path(std::string_view path);      // bytes that a URL's path cannot hold become %XX

std::string base64(std::string_view bytes);

// Numbers for readers, with a typographic minus sign.
std::string count_text(double count);                 // "400,000"
std::string number_text(double number);               // four digits, or a large integer; "–" if it is NaN
std::string fixed_text(double number, int decimals);  // "−124.63"
std::string estimate_text(const Estimate& estimate);  // "−143.78 ± 0.33": two digits of the error decide
std::string size_text(std::uintmax_t bytes);          // "12 kB"

}  // namespace hone
