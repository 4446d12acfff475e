#include "app/run/run_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temporary.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

TEST(WriteFile, ReplacesAWholeFileAndLeavesNothingAside) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "a.txt";
  write_file(path, "first");
  write_file(path, std::string(3'000'000, 'x'));
  EXPECT_EQ(read_file(path).size(), 3'000'000u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(WriteFile, AFullDiskIsAnErrorThatNamesTheFile) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const test::TemporaryFolder folder;
  fs::create_symlink("/dev/full", folder.path() / ("a.txt." + std::to_string(::getpid()) + ".partial"));
  try {
    write_file(folder.path() / "a.txt", "content");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), (folder.path() / "a.txt").string() + ": writing failed: No space left on device");
  }
  EXPECT_FALSE(fs::exists(folder.path() / "a.txt"));
}

TEST(WriteFile, OnlyRegularFilesAreReplaced) {
  const test::TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  try {
    write_file(pipe, "content");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), pipe.string() + ": cannot be replaced: it is no regular file");
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(ReadFile, ADeviceWithoutAnEndIsRefused) {
  if (!fs::exists("/dev/zero")) GTEST_SKIP() << "no /dev/zero here";
  EXPECT_THROW(read_file("/dev/zero"), InputError);
  EXPECT_EQ(read_file("/dev/null"), "");
}

TEST(WriteFile, AMissingFolderIsAnErrorThatNamesTheFile) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "nowhere" / "a.txt";
  try {
    write_file(path, "content");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), path.string() + ": opening failed: No such file or directory");
  }
}

TEST(RunFolder, RefusesAFolderInUseAndAFile) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "a.txt", "x");
  EXPECT_THROW(RunFolder(folder.path()), InputError);
  EXPECT_THROW(RunFolder(folder.path() / "a.txt"), InputError);
  EXPECT_THROW(RunFolder(folder.path() / "a.txt" / "b"), InputError);
  RunFolder fine(folder.path() / "new" / "deep");
  EXPECT_TRUE(fs::is_directory(fine.path()));
}

TEST(RunFolder, CheckRefusesTheSameAndMakesNothing) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "a.txt", "x");
  EXPECT_THROW(RunFolder::check(folder.path()), InputError);
  EXPECT_THROW(RunFolder::check(folder.path() / "a.txt"), InputError);
  EXPECT_THROW(RunFolder::check(folder.path() / "a.txt" / "b"), InputError);
  EXPECT_NO_THROW(RunFolder::check(folder.path() / "new" / "deep"));
  EXPECT_NO_THROW(check_can_make_folder(folder.path()));
  EXPECT_FALSE(fs::exists(folder.path() / "new"));
  EXPECT_THROW(RunFolder::check(folder.path(), Reuse::run), InputError);
  write_file(folder.path() / "config.toml", "x");
  EXPECT_NO_THROW(RunFolder::check(folder.path(), Reuse::run));
}

TEST(RunFolder, WhatAKilledProcessLeftIsNothing) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "config.toml.123.partial", "half");
  EXPECT_NO_THROW(RunFolder(folder.path()));
}

TEST(FreeFolder, CountsUp) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(free_folder(folder.path(), "run").filename(), "run");
  fs::create_directory(folder.path() / "run");
  EXPECT_EQ(free_folder(folder.path(), "run").filename(), "run-2");
  fs::create_directory(folder.path() / "run-2");
  EXPECT_EQ(free_folder(folder.path(), "run").filename(), "run-3");
}

TEST(CsvFile, GoesOnAfterTheRowsThatCount) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "a.csv";
  EXPECT_EQ(CsvFile(path, "iteration,x", 7).last_kept(), "");
  write_file(path, "iteration,x\n3,a\n7,b\n8,c\n");
  {
    CsvFile file(path, "iteration,x", 7);
    EXPECT_EQ(file.last_kept(), "7,b");
    file.row("9,d");
    file.sync();
  }
  EXPECT_EQ(read_file(path), "iteration,x\n3,a\n7,b\n9,d\n");
  write_file(path, "iteration,x\n3,a\n5");  // a crash in the middle of a row
  EXPECT_EQ(CsvFile(path, "iteration,x", 7).last_kept(), "3,a");
  EXPECT_EQ(read_file(path), "iteration,x\n3,a\n");
}

TEST(ReadFile, NamesWhatCannotBeRead) {
  EXPECT_THROW(read_file("/nonexistent"), InputError);
  EXPECT_THROW(read_file("/"), InputError);
}

}  // namespace
}  // namespace hone
