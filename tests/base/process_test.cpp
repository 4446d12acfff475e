#include "hone/base/process.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>

#include "hone/base/cpus.hpp"
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

// Ranks that are not bound share the CPUs: each has its own as long as there are enough.
TEST(Process, UnboundRanksShareTheCpus) {
  using Cpus = std::vector<int>;
  const Cpus all = {2, 3, 5, 7, 8};
  EXPECT_EQ(own_share(all), all);
  const auto share = [&](const char* rank, const char* ranks) {
    const std::map<const char*, const char*> values = {
        {"OMPI_COMM_WORLD_SIZE", ranks}, {"OMPI_COMM_WORLD_LOCAL_SIZE", ranks}, {"OMPI_COMM_WORLD_LOCAL_RANK", rank}};
    for (const auto& [name, value] : values) ::setenv(name, value, 1);
    const Cpus own = own_share(all);
    for (const auto& [name, value] : values) ::unsetenv(name);
    return own;
  };
  EXPECT_EQ(share("0", "2"), (Cpus{2, 3}));
  EXPECT_EQ(share("1", "2"), (Cpus{5, 7, 8}));
  EXPECT_EQ(share("4", "5"), Cpus{8});
  EXPECT_EQ(share("0", "7"), Cpus{2});
  EXPECT_EQ(share("6", "7"), Cpus{8});
  EXPECT_EQ(default_threads(), static_cast<int>(own_cpus().size()));
}

#ifdef __linux__

TEST(Process, DefaultThreadsAreTheCpusThatItMayUse) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const pid_t child = ::fork();  // which asks for the first time
  if (child == 0) ::execl("/proc/self/exe", "test", "--gtest_filter=Process.HasOneThread", nullptr);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(status, 0);
}

// A part of the test above.
TEST(Process, HasOneThread) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(default_threads(), CPU_COUNT(&set));
}

#endif

}  // namespace
}  // namespace hone
