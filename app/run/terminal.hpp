#pragma once

#include <cstdio>
#include <string>

namespace hone {

// The width of lines: that of the terminal; without a terminal COLUMNS if it is set, otherwise 80. At
// least 40.
int terminal_width(std::FILE* out);

// Characters of a UTF-8 text.
int width_of(const std::string& text);

// As many of its characters as fit into a width; the last one is … if the text was cut.
std::string cut_to(const std::string& text, int width);

// The text in lines of at most `width` characters, broken at spaces. The first begins with `first`, the others with as
// many blanks. Ends with a line break.
std::string wrapped(const std::string& first, const std::string& text, int width);

// A page of help in lines of at most `width` characters: what follows a gap of two blanks stays in its column.
std::string fitted_help(const std::string& page, int width);

}  // namespace hone
