#include "app/run/cells.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/temporary.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct Counting {
  std::vector<Cell> cells(const std::string& config, int failing = -1) {
    std::vector<Cell> list;
    for (int i = 0; i < 5; ++i)
      list.push_back({"cell" + std::to_string(i), config, [this, config, i, failing](const RunFolder& folder) {
                        folder.write("config.toml", config);
                        if (i == failing) throw Error("stopped");
                        ++runs;
                        folder.write("summary.json", "{}");
                      }});
    return list;
  }
  std::atomic<int> runs = 0;
};

void run(const CellList& list, int threads = 1) {
  Progress quiet(stderr, ProgressStyle::quiet, "", "", 1);
  list.run(threads, quiet);
}

TEST(CellList, GoesOnWithWhatIsMissing) {
  const test::TemporaryFolder folder;
  Counting counting;
  const fs::path path = folder.path() / "experiment";
  EXPECT_THROW(run(CellList(path, counting.cells("a = 1\n", 2))), Error);
  EXPECT_EQ(counting.runs, 2);
  EXPECT_FALSE(fs::exists(path / "cells" / "cell2"));  // only its .partial
  const CellList list(path, counting.cells("a = 1\n"));
  EXPECT_TRUE(list.is_done(1));
  EXPECT_FALSE(list.is_done(2));
  run(list, 2);
  EXPECT_EQ(counting.runs, 5);
  run(list);
  EXPECT_EQ(counting.runs, 5);  // nothing runs twice
  run(CellList(path, counting.cells("a = 2\n")));
  EXPECT_EQ(counting.runs, 10);  // another configuration runs again
}

TEST(CellList, TheHelpBehindAKeyDoesNotCount) {
  const test::TemporaryFolder folder;
  Counting counting;
  const auto runs_with = [&](const std::string& config) {
    counting.runs = 0;
    run(CellList(folder.path(), counting.cells(config)));
    return counting.runs.load();
  };
  EXPECT_EQ(runs_with("# 10 iterations\na = \"x  # y\"  # old help\n\n[t]\nb = 2  # more of it\n"), 5);
  EXPECT_EQ(runs_with("# 10 iterations\na = \"x  # y\"  # new help\n\n[t]\nb = 2  # more of that\n"), 0);
  EXPECT_EQ(runs_with("# 10 iterations\na = \"x  # z\"  # new help\n\n[t]\nb = 2  # more of that\n"), 5);
  EXPECT_EQ(runs_with("# 20 iterations\na = \"x  # z\"  # new help\n\n[t]\nb = 2  # more of that\n"), 5);
}

TEST(CellList, RunsADamagedCellAgain) {
  const test::TemporaryFolder folder;
  Counting counting;
  const CellList list(folder.path(), counting.cells("a = 1\n"));
  run(list);
  write_file(list.folder_of(3) / "summary.json", "{\"seconds_per_iter");
  EXPECT_EQ(list.state(3), CellState::damaged);
  EXPECT_EQ(list.state(2), CellState::done);
  run(list);
  EXPECT_EQ(counting.runs, 6);
  EXPECT_TRUE(list.is_done(3));
}

TEST(CellList, RefusesAFolderOfSomethingElse) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "thesis.txt", "precious");
  EXPECT_THROW(CellList(folder.path(), {}), InputError);
  EXPECT_THROW(CellList(folder.path() / "thesis.txt", {}), InputError);
}

}  // namespace
}  // namespace hone
