#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hone {

// A Stan program with its #include lines replaced by what they name.
struct StanSource {
  struct Origin {
    std::filesystem::path file;
    int line = 0;
  };
  std::string text;
  std::vector<Origin> lines;  // where line i + 1 of the text was read

  // Where line `number` (from 1) of the text was read; past the end, where the last line was read.
  const Origin& origin(int number) const;
};

// Reads a program. Included files are searched for in the folder of the including file, then in that of the program.
// Throws InputError with file and line if one cannot be read or includes itself.
StanSource read_stan(const std::filesystem::path& program);

// The program as Stan 2.21 reads it, line for line: arrays declared after their name, one declaration per
// statement, _lpdf and _lpmf for _lupdf and _lupmf. Comments and strings stay. What is not understood is left for the
// translator to reject.
std::string to_stan_2_21(const std::string& text);

}  // namespace hone
