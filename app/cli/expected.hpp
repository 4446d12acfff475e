#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace hone {

// What options take, for `check`, and what is wrong with a command line: all in the words of Settings, none in the
// parser's own.
CLI::Validator integer(std::int64_t least, std::int64_t most);
CLI::Validator one_of(std::vector<std::string> names);

// The parser's complaint about an option or argument of `app`.
std::string complaint(const CLI::App& app, const CLI::ParseError& error);

}  // namespace hone
