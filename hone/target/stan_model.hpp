#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace hone {

struct StanOptions {
  std::filesystem::path cache;                       // where compiled models are kept; empty: the user's, in hone/stan
  std::function<void(const std::string&)> progress;  // told of steps that take seconds; may be empty
};

// A Stan program as a library with BridgeStan's C interface, for load_bridgestan: translated and compiled, unless the
// cache has it. What decides is the text with all that it includes, the compiler and Stan's version, not file names.
//
// The folder that the environment variable BRIDGESTAN names comes first; else Debian's r-cran-rstan translates and
// CXX, or g++, compiles. Safe where several processes want the same model: one compiles, the others wait.
// Throws InputError where the program cannot be read or translated (with the translator's message, file and line),
// where a tool is missing (with the command that installs it) and where there is no folder for the cache.
std::filesystem::path compile_stan(const std::filesystem::path& program, const StanOptions& options = {});

}  // namespace hone
