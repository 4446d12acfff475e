#include "hone/base/process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "hone/base/error.hpp"
#include "hone/base/ranks.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

TEST(Process, GivesStatusAndBothOutputs) {
  const Finished finished = run_program({"sh", "-c", "echo out; echo problem >&2; exit 3"});
  EXPECT_EQ(finished.status, 3);
  EXPECT_EQ(finished.output, "out\nproblem\n");
}

TEST(Process, WordsAreNotReadByAShell) {
  EXPECT_EQ(run_program({"printf", "%s", "$HOME; a 'b'"}).output, "$HOME; a 'b'");
}

TEST(Process, RunsInsideAFolderWithoutInput) {
  EXPECT_EQ(run_program({"pwd"}, "/").output, "/\n");
  EXPECT_EQ(run_program({"cat"}).output, "");
}

TEST(Process, TellsOfSignalsAndMissingPrograms) {
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}).status, 128 + 9);
  EXPECT_EQ(run_program({"no-such-program-of-this-name"}).status, program_not_found);
}

TEST(Process, ReadsMoreThanAPipeHolds) {
  EXPECT_EQ(run_program({"sh", "-c", "yes | head -c 300000"}).output.size(), 300000u);
}

TEST(Process, StopsAProgramAndAllThatItStarted) {
  const test::TemporaryFolder folder;
  const std::string script = "sleep 60 & echo $! > child; sleep 60 & wait";
  const auto stop = [&] { return std::filesystem::exists(folder.path() / "child"); };
  EXPECT_THROW(run_program({"sh", "-c", script}, folder.path(), stop), Stopped);
  std::ifstream file(folder.path() / "child");
  pid_t child = 0;
  while (!(file >> child)) file.clear(), file.seekg(0);  // the shell makes the file before it writes the number
  // The killed grandchild is gone, or a zombie until the system's first process takes notice.
  for (int tries = 0; tries < 100 && ::kill(child, 0) == 0; ++tries) {
    std::ifstream state("/proc/" + std::to_string(child) + "/stat");
    std::string number, name, letter;
    if (!(state >> number >> name >> letter) || letter == "Z") return;
    ::usleep(20000);
  }
  EXPECT_NE(::kill(child, 0), 0);
}

TEST(Process, WithoutAStopTheResultIsTheSame) {
  const Finished finished = run_program({"sh", "-c", "echo out; exit 3"}, {}, [] { return false; });
  EXPECT_EQ(finished.status, 3);
  EXPECT_EQ(finished.output, "out\n");
}

// What each launcher writes into the environment of its processes.
TEST(Process, KnowsItsNumberOnTheMachine) {
  const std::vector<const char*> variables = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
  for (const char* variable : variables) ::unsetenv(variable);
  EXPECT_EQ(local_rank(), 0);
  for (const char* variable : variables) {
    ::setenv(variable, "3", 1);
    EXPECT_EQ(local_rank(), 3) << variable;
    ::unsetenv(variable);
  }
}

}  // namespace
}  // namespace hone
