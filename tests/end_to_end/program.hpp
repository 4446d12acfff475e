#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "hone/base/file.hpp"
#include "tests/support/temporary.hpp"

namespace hone::test {

struct Outcome {
  int code = 0;
  std::string out, err;
};

// A text without the line breaks and margins that fit it to the terminal.
inline std::string unwrapped(const std::string& text) {
  std::istringstream words(text);
  std::string result;
  for (std::string word; words >> word;) result += (result.empty() ? "" : " ") + word;
  return result;
}

class Program : public testing::Test {
 protected:
  // Runs `hone ARGUMENTS` in the test's folder.
  Outcome hone(const std::string& arguments) const { return shell("\"$HONE\" " + arguments); }

  // Runs a shell script there; $HONE is the program.
  Outcome shell(const std::string& script) const {
    const std::string command = "cd '" + folder.path().string() + "' && HONE='" HONE_PROGRAM "' && { " + script +
                                "\n} >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(command.c_str());
    Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder.path() / "stdout.txt"),
                    read_file(folder.path() / "stderr.txt")};
    std::filesystem::remove(folder.path() / "stdout.txt");
    std::filesystem::remove(folder.path() / "stderr.txt");
    return outcome;
  }

  // Expects a refusal: exit code 2, a message that contains `part`, nothing written.
  void expect_refused(const std::string& arguments, const std::string& part) const {
    const Outcome outcome = hone(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << arguments;
  }

  test::TemporaryFolder folder;
};

}  // namespace hone::test
