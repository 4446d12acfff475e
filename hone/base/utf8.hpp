#pragma once

#include <cstddef>
#include <string_view>

namespace hone {

// The length in bytes of the valid UTF-8 sequence at the start of a text that is not empty; 0 if there is none.
std::size_t utf8_length(std::string_view text);

}  // namespace hone
