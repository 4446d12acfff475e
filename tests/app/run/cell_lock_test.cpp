#include "app/run/cell_lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "app/run/cells.hpp"
#include "hone/base/file.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

void make_old(const fs::path& file, int seconds) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
}

int files_in(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// Forks a process that claims the file and then stands still until it is killed; returns its number.
pid_t holder_of(const fs::path& file) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = CellLock::take(file);
    (void)!write(ready[1], lock ? "y" : "n", 1);
    for (;;) pause();
  }
  char answer = 'n';
  EXPECT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  close(ready[0]);
  close(ready[1]);
  return child;
}

void kill_child(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(CellLock, IsHeldByOneProcessUntilItEnds) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "cell";
  const pid_t child = holder_of(file);
  EXPECT_EQ(CellLock::take(file), nullptr);
  EXPECT_NE(CellLock::holder(file).find("process " + std::to_string(child) + ", since 20"), std::string::npos);
  make_old(file, 1000);  // its process is there, so it counts
  EXPECT_EQ(CellLock::take(file), nullptr);
  kill_child(child);
  const auto mine = CellLock::take(file);
  ASSERT_NE(mine, nullptr);
  EXPECT_FALSE(mine->lost());
  EXPECT_EQ(CellLock::take(file), nullptr);  // not even this process gets it twice
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(CellLock, OfAnotherHostCountsAsLongAsItIsRenewed) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "cell";
  write_file(file, "node7 pid:[1] 1 1 2026-01-02 03:04:05\n");
  EXPECT_EQ(CellLock::holder(file), "host node7, process 1, since 2026-01-02 03:04:05");
  make_old(file, CellLock::stale_seconds - 20);
  EXPECT_EQ(CellLock::take(file), nullptr);
  make_old(file, CellLock::stale_seconds + 20);
  EXPECT_NE(CellLock::take(file), nullptr);
  EXPECT_FALSE(fs::exists(file));  // given back
}

TEST(CellLock, ProcessNumbersThatAreUsedAgainDoNotCount) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "cell";
  std::string text;
  {
    const auto lock = CellLock::take(file);
    text = read_file(file);
  }
  // host, container, process, start: another start of the same number
  const std::size_t at = text.find(' ', text.find(' ', text.find(' ') + 1) + 1) + 1;
  write_file(file, text.substr(0, at) + "9" + text.substr(at));
  const auto lock = CellLock::take(file);
  ASSERT_NE(lock, nullptr);
  write_file(file, "node7 pid:[1] 1 1 now\n");
  EXPECT_TRUE(lock->lost());
}

// Processes that claim, count and give back, and that die with a claim: no two have it at once.
TEST(CellLock, ManyTakersOfAStaleClaim) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "cell";
  std::atomic<int> inside = 0, most = 0, taken = 0;
  for (int round = 0; round < 10; ++round) {
    kill_child(holder_of(file));
    std::vector<std::jthread> takers;
    for (int i = 0; i < 4; ++i)
      takers.emplace_back([&] {
        const auto lock = CellLock::take(file);
        if (!lock) return;
        ++taken;
        most = std::max(most.load(), ++inside);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        --inside;
      });
    takers.clear();
    EXPECT_GE(taken, round + 1);
  }
  EXPECT_EQ(most, 1);
}

// Several processes run one list, and one of them is killed in the middle of a cell.
TEST(CellList, SeveralProcessesShareAList) {
  const test::TemporaryFolder folder;
  const auto cells = [](const fs::path& log, int milliseconds) {
    std::vector<Cell> list;
    for (int i = 0; i < 12; ++i)
      list.push_back({"cell" + std::to_string(i), "a = 1\n", [log, i, milliseconds](const RunFolder& run) {
                        run.write("config.toml", "a = 1\n");
                        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
                        run.write("summary.json", "{\"cell\": " + std::to_string(i) + "}");
                        write_file(log / (std::to_string(i) + "-" + std::to_string(getpid())), "");
                      }});
    return list;
  };
  const fs::path path = folder.path() / "experiment", log = folder.path() / "log";
  fs::create_directories(log);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() > 0) continue;
    Progress quiet(stderr, ProgressStyle::quiet, "", "", 1);
    CellList(path, cells(log, i == 0 ? 60000 : 30)).run(1, quiet);  // the first one never ends its cell
    _exit(0);
  }
  for (int i = 1; i < 4; ++i) {
    int status = -1;
    waitpid(children[i], &status, 0);
    EXPECT_EQ(status, 0);
  }
  kill_child(children[0]);
  const CellList list(path, cells(log, 0));
  Progress quiet(stderr, ProgressStyle::quiet, "", "", 1);
  list.run(1, quiet);
  for (std::size_t i = 0; i < list.size(); ++i) EXPECT_TRUE(list.is_done(i)) << i;
  EXPECT_EQ(files_in(log), 12);  // each was finished once
  EXPECT_EQ(files_in(path / "locks"), 0);
}

// A process is killed between finishing a cell and giving its claim back, or while it claims a cell.
TEST(CellList, RemovesWhatKilledProcessesLeft) {
  const test::TemporaryFolder folder;
  const CellList list(folder.path(), {{"cell", "a = 1\n", [](const RunFolder& run) {
                                         run.write("config.toml", "a = 1\n");
                                         run.write("summary.json", "{}");
                                       }}});
  Progress quiet(stderr, ProgressStyle::quiet, "", "", 1);
  list.run(1, quiet);
  const fs::path locks = folder.path() / "locks", file = locks / "cell";
  const pid_t killed = holder_of(file), alive = holder_of(locks / "other");
  write_file(locks / "~cell.here-1-0", read_file(file));
  write_file(locks / "~other.here-2-0", read_file(locks / "other"));
  write_file(locks / "~cell.node7-1-0", "node7 pid:[1] 1 1 2026-01-02 03:04:05\n");
  list.run(1, quiet);
  EXPECT_EQ(files_in(locks), 5);  // nothing that a living process has, and nothing of other hosts
  kill_child(killed);
  list.run(1, quiet);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(fs::exists(locks / "~cell.here-1-0"));
  EXPECT_EQ(files_in(locks), 3);
  kill_child(alive);
}

}  // namespace
}  // namespace hone
