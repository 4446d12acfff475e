#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hone {

// The candidate that is spelled most like `word`, capital letters as small ones, or nothing where none is near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'X'?" for the nearest candidate, or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// "a, b, c"
std::string join(std::span<const std::string> words);

}  // namespace hone
