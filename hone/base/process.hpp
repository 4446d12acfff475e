#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace hone {

// How a program ended.
struct Finished {
  int status = 0;      // the exit status; 127: program not found, 128 + n: ended by signal n
  std::string output;  // standard output and standard error together
};
inline constexpr int program_not_found = 127;

// Runs a program and waits for it: words[0], searched for in PATH, with the other words as its arguments, in `folder`
// or, if that is empty, in the current folder. There is no shell and no input. Throws Error if the program cannot be
// started.
//
// With `stop`, the program and all that it starts form a process group of their own, which Ctrl-C does not reach.
// stop() is asked every 50 ms; once it is true, the whole group is ended, and Stopped is thrown.
Finished run_program(const std::vector<std::string>& words, const std::filesystem::path& folder = {},
                     const std::function<bool()>& stop = {});

}  // namespace hone
