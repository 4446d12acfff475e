#include "app/run/cells.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST(CellList, AFinishedCellLeavesNothingOfClaimsBefore) {
  const test::TemporaryFolder folder;
  Counting counting;
  const CellList list(folder.path(), counting.cells("a = 1\n"));
  const fs::path cells = folder.path() / "cells";
  for (const char* name : {"cell1.partial", "cell1~node7-12-34.partial", "cell1~node8-5-6.partial", "cell11~x.partial"})
    fs::create_directories(cells / name / "figures");
  run(list);
  for (const auto& entry : fs::directory_iterator(cells))
    EXPECT_TRUE(entry.path().extension() != ".partial" || entry.path().filename() == "cell11~x.partial")
        << entry.path();
  EXPECT_TRUE(fs::exists(cells / "cell11~x.partial"));  // of another cell
}

// A process stands still in a cell, another one takes the cell over and finishes it, and the first one goes on.
TEST(CellList, TheHolderOfALostClaimDoesNotWriteIntoTheCell) {
  for (const bool finished : {true, false}) {
    const test::TemporaryFolder folder;
    const auto cell = [](std::function<void(const RunFolder&)> work) {
      return std::vector<Cell>{{"cell", "a = 1\n", std::move(work)}};
    };
    const auto good = [](const RunFolder& run) {
      run.write("config.toml", "a = 1\n");
      run.write("summary.json", "{\"by\": \"the second\"}");
    };
    const auto slow = [&](const RunFolder& own) {
      own.write("config.toml", "a = 1\n");
      const fs::path lock = lock_of(folder.path(), "cell");
      write_file(lock, "node7 pid:[1] 1 1 2026-01-02 03:04:05\n");
      fs::last_write_time(lock, fs::file_time_type::clock::now() - std::chrono::hours(1));
      const auto second = [&](const RunFolder& run) {
        good(run);
        if (!finished) _exit(0);
      };
      if (const pid_t other = fork(); other > 0) {
        waitpid(other, nullptr, 0);
      } else {
        run(CellList(folder.path(), cell(second)));
        _exit(0);
      }
      own.write("summary.json", "{\"by\": \"the first\"}");
    };
    std::string why;
    try {
      run(CellList(folder.path(), cell(slow)));
    } catch (const Error& error) {
      why = error.what();
    }
    EXPECT_NE(why.find("another process took this cell over"), std::string::npos) << why;
    run(CellList(folder.path(), cell(good)));
    EXPECT_NE(read_file(folder.path() / "cells/cell/summary.json").find("the second"), std::string::npos);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "cells"), {}), 1);
  }
}

TEST(CellList, RefusesAFolderOfSomethingElse) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "thesis.txt", "precious");
  EXPECT_THROW(CellList(folder.path(), {}), InputError);
  EXPECT_THROW(CellList(folder.path() / "thesis.txt", {}), InputError);
}

}  // namespace
}  // namespace hone
