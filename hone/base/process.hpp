#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hone {

struct Finished {
  int status = 0;      // the exit status; 127 where the program is not found, 128 + n where signal n ended it
  std::string output;  // what it wrote, standard output and errors together
};
inline constexpr int program_not_found = 127;

// Runs a program (words[0], looked for in PATH) with the other words as its arguments, inside `folder` (here where it
// is empty), and waits for it. No shell reads the words. It gets no input. Throws Error where it cannot be started.
Finished run_program(const std::vector<std::string>& words, const std::filesystem::path& folder = {});

}  // namespace hone
