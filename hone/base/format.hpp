#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace hone::detail {

using FormatArgument = std::variant<long long, unsigned long long, double, std::string_view>;

std::string format_arguments(std::string_view pattern, std::initializer_list<FormatArgument> arguments);

template <class T>
FormatArgument format_argument(const T& value) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(value);
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
    return static_cast<long long>(value);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<unsigned long long>(value);
  else
    return std::string_view(value);
}

// The part of std::format that the library's messages need: {}, {:.3f} and {:.3g}, arguments in order. Throws
// std::logic_error if places and arguments differ in number. It keeps the library free of fmt; replace it by
// std::format when GCC 13 is the oldest supported compiler.
template <class... T>
std::string format(std::string_view pattern, const T&... arguments) {
  return format_arguments(pattern, {format_argument(arguments)...});
}

}  // namespace hone::detail
