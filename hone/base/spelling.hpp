#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hone {

// The candidate whose spelling is closest to `word`, ignoring case; empty if none is close.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'X'?" with the nearest candidate, or empty.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// "a, b, c"
std::string join(std::span<const std::string> words);

}  // namespace hone
