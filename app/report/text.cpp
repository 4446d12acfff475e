#include "app/report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hone/base/utf8.hpp"

namespace hone {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// put(character) for every character, as its UTF-8
template <class Put>
void for_characters(std::string_view text, Put put) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, length));
    const auto first = static_cast<unsigned char>(character[0]);
    const bool control = (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
    put(length == 0 || control ? replacement : character);
    text.remove_prefix(character.size());
  }
}

std::string with_minus(std::string text) {
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string result;
  for_characters(text, [&](std::string_view c) {
    if (c == "&")
      result += "&amp;";
    else if (c == "<")
      result += "&lt;";
    else if (c == ">")
      result += "&gt;";
    else if (c == "\"")
      result += "&quot;";
    else if (c == "'")
      result += "&#39;";
    else
      result += c;
  });
  return result;
}

// In single quotes gnuplot takes everything literally except the quote itself, which is doubled.
std::string gnuplot_text(std::string_view text) {
  std::string result = "'";
  for_characters(text, [&](std::string_view c) {
    if (c == "'")
      result += "''";
    else if (c == "\n" || c == "\t")
      result += " ";
    else if (c == "`")
      result += "´";  // elsewhere a command
    else
      result += c;
  });
  return result + "'";
}

std::string url_path(std::string_view path) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string result;
  for (const char c : path)
    result += plain.find(c) != plain.npos ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return result;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view part = bytes.substr(i, 3);
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 3; ++j) word = word << 8 | (j < part.size() ? static_cast<unsigned char>(part[j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) result += j <= part.size() ? digits[word >> (18 - 6 * j) & 63] : '=';
  }
  return result;
}

std::string count_text(double count) {
  if (!(std::abs(count) < 1e15)) return number_text(count);
  std::string text = fmt::format("{:.0f}", count);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  for (std::size_t i = text.size(); i > first + 3;) text.insert(i -= 3, ",");
  return with_minus(text);
}

std::string number_text(double number) {
  if (std::isnan(number)) return "–";
  if (std::isinf(number)) return number > 0 ? "∞" : "−∞";
  if (std::abs(number) >= 1e4 && std::abs(number) < 1e9) return count_text(number);
  return with_minus(fmt::format("{:.4g}", number));
}

std::string fixed_text(double number, int decimals) { return with_minus(fmt::format("{:.{}f}", number, decimals)); }

std::string estimate_text(const Estimate& estimate) {
  const auto& [mean, se] = estimate;
  if (!std::isfinite(mean) || !std::isfinite(se) || se <= 0) return number_text(mean);
  if (std::max(std::abs(mean), se) >= 1e9) return fmt::format("{} ± {}", number_text(mean), number_text(se));
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(se))), 0, 9);
  return with_minus(fmt::format("{:.{}f} ± {:.{}f}", mean, decimals, se, decimals));
}

std::string size_text(std::uintmax_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  const auto number = static_cast<double>(bytes);
  if (number < 1e6) return fmt::format("{:.0f} kB", number / 1e3);
  return number < 1e9 ? fmt::format("{:.1f} MB", number / 1e6) : fmt::format("{:.1f} GB", number / 1e9);
}

}  // namespace hone
