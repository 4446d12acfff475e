#pragma once

#include <string>

namespace hone {

// Our Markdown for a terminal: lines of at most `columns` characters. Tables get aligned columns, and cells that are
// too wide are broken; long paragraphs are broken too.
std::string terminal_text(const std::string& markdown, std::size_t columns);

}  // namespace hone
