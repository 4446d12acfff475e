#include "hone/base/format.hpp"

#include <charconv>
#include <cstdio>
#include <stdexcept>

namespace hone::detail {
namespace {

std::string text_of(const FormatArgument& argument, std::string_view specification) {
  if (const auto* text = std::get_if<std::string_view>(&argument)) return std::string(*text);
  if (const auto* number = std::get_if<long long>(&argument)) return std::to_string(*number);
  if (const auto* number = std::get_if<unsigned long long>(&argument)) return std::to_string(*number);
  char text[400];  // %.9f of 10³⁰⁸ has 319 characters
  const double number = std::get<double>(argument);
  if (specification.empty()) return {text, std::to_chars(text, text + sizeof text, number).ptr};
  const std::string printf_format = "%" + std::string(specification);
  return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, printf_format.c_str(), number))};
}

}  // namespace

std::string format_arguments(std::string_view pattern, std::initializer_list<FormatArgument> arguments) {
  std::string out;
  auto argument = arguments.begin();
  for (std::size_t open; (open = pattern.find('{')) != std::string_view::npos;) {
    const std::size_t close = pattern.find('}', open);
    if (close == std::string_view::npos) throw std::logic_error("a format has an unclosed brace");
    if (argument == arguments.end()) throw std::logic_error("a format has fewer arguments than places");
    std::string_view specification = pattern.substr(open + 1, close - open - 1);
    if (specification.starts_with(':')) specification.remove_prefix(1);
    out += pattern.substr(0, open);
    out += text_of(*argument++, specification);
    pattern.remove_prefix(close + 1);
  }
  if (argument != arguments.end()) throw std::logic_error("a format has more arguments than places");
  return out.append(pattern);
}

}  // namespace hone::detail
