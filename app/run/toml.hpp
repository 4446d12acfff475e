#pragma once

#include <string>

// The parser of TOML, with errors in place of its assertions: a file like "[ = 3" must be refused, not end the
// program.
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

namespace hone {

// Parses a file's content. Throws toml::parse_error, also for letters beyond ASCII outside strings and comments, which
// TOML does not have and for which the parser's tables have gaps.
toml::table parse_toml(const std::string& text, const std::string& name);

}  // namespace hone
