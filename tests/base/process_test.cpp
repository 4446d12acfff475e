#include "hone/base/process.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hone
