#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hone/base/statistics.hpp"

namespace hone {

// Texts that come from files and go into a page or a gnuplot script: whatever they hold, they stay texts. Bytes that
// are no UTF-8, and control characters, become U+FFFD.
std::string html_text(std::string_view text);     // for content and for attributes in quotes
std::string gnuplot_text(std::string_view text);  // with its quotes; for keys and titles that are not "enhanced"
std::string url_path(std::string_view path);      // each byte that a URL's path cannot hold as %XX

std::string base64(std::string_view bytes);

// Numbers for people, with a minus sign.
std::string count_text(double count);                 // "400,000"
std::string number_text(double number);               // four digits, or an integer of many; "–" where it is none
std::string fixed_text(double number, int decimals);  // "−124.63"
std::string estimate_text(const Estimate& estimate);  // "−143.78 ± 0.33": two digits of the error decide
std::string size_text(std::uintmax_t bytes);          // "12 kB"

}  // namespace hone
