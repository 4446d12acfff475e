#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

#include "app/cli/commands.hpp"
#include "app/data/registry.hpp"
#include "tests/app/data/server.hpp"

namespace hone {
namespace {

using namespace hone::test;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DataCommand : public Folder {
 protected:
  DataCommand() {
    unsetenv("HONE_DATA_DIR");
    unsetenv("HONE_DATA_URL");
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }

  // What the command prints. Errors come through.
  std::string run(const std::string& arguments) const {
    CLI::App app;
    add_data_command(app);
    ::testing::internal::CaptureStdout();
    try {
      app.parse("data " + arguments);
    } catch (...) {
      ::testing::internal::GetCapturedStdout();
      throw;
    }
    return ::testing::internal::GetCapturedStdout();
  }
};

TEST_F(DataCommand, ListNamesEverySetAndPlace) {
  const std::string text = run("list --data-dir " + folder_.string());
  for (const DataSetInfo& info : known_data_sets()) EXPECT_THAT(text, HasSubstr(info.name + "\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("not found"), HasSubstr("hone data get mnist"), HasSubstr("always there")));
  EXPECT_THAT(text, AllOf(HasSubstr(folder_.string() + " (--data-dir)"), HasSubstr("(cache)"), HasSubstr("(system)")));
}

TEST_F(DataCommand, ShowDrawsInTheTerminalAndInAFile) {
  EXPECT_THAT(run("show synthetic --count 2"), AllOf(HasSubstr("bars and ovals"), HasSubstr("▀")));
  const auto file = folder_ / "picture.png";
  EXPECT_THAT(run("show synthetic --split test --count 5 --out " + file.string()), HasSubstr("written: "));
  EXPECT_GT(std::filesystem::file_size(file), 100u);
}

TEST_F(DataCommand, ShowReadsFiles) {
  const auto file = write("bits.amat", bytes_of("0 1 1\n1 1 1\n"));
  EXPECT_THAT(run("show " + file.string()), HasSubstr("2 data, 1 × 3 pixels"));
  EXPECT_THAT(input_error([&] { run("show --split test " + file.string()); }), HasSubstr("has no split 'test'"));
}

TEST_F(DataCommand, WrongArgumentsAreInputErrors) {
  EXPECT_THAT(input_error([&] { run("show mnits"); }), HasSubstr("there is no data set 'mnits'"));
  EXPECT_THAT(input_error([&] { run("show synthetic --split tset"); }), HasSubstr("--split 'tset'"));
  EXPECT_THAT(input_error([&] { run("show synthetic --binarization half"); }), HasSubstr("'half'"));
  EXPECT_THAT(input_error([&] { run("verify binarized-mnist"); }), HasSubstr("'binarized-mnist' is not found"));
  EXPECT_THAT(input_error([&] { run("get synthetic"); }), HasSubstr("made by code"));
  EXPECT_THROW(run("show synthetic --count 0"), CLI::ValidationError);
}

TEST_F(DataCommand, VerifyNamesTheBrokenFile) {
  write("mnist/train-images-idx3-ubyte", idx_images(60, 28, 28));
  write("mnist/t10k-images-idx3-ubyte.gz", bytes_of("<html>"));
  try {
    run("verify mnist --data-dir " + folder_.string());
    FAIL() << "expected an error";
  } catch (const InputError&) {
    FAIL() << "a broken file is no wrong argument";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("train-images-idx3-ubyte: expected 60000 images of 28 × 28 pixels"));
    EXPECT_THAT(error.what(), HasSubstr("t10k-images-idx3-ubyte.gz: byte 0: expected an IDX file"));
  }
}

TEST_F(DataCommand, GetDownloadsIntoTheFolder) {
  std::string line;
  for (int i = 0; i < 784; ++i) line += i % 3 ? "1 " : "0 ";
  line.back() = '\n';
  Bytes text;
  for (int i = 0; i < 10'000; ++i) text.insert(text.end(), line.begin(), line.end());
  Bytes training;
  for (int i = 0; i < 5; ++i) training.insert(training.end(), text.begin(), text.end());
  Server server([&](const Request& asked) {
    return Answer{.content = asked.path == "/binarized-mnist/binarized_mnist_train.amat" ? training : text};
  });
  const std::string data = " --data-dir " + folder_.string();
  EXPECT_THAT(run("get binarized-mnist --url " + server.url() + data),
              AllOf(HasSubstr("binarized_mnist_valid.amat: downloaded, structure checked"),
                    HasSubstr("in " + (folder_ / "binarized-mnist").string())));
  EXPECT_THAT(run("verify binarized-mnist" + data), HasSubstr("binarized_mnist_test.amat: good"));
  EXPECT_THAT(run("get binarized-mnist" + data), HasSubstr("already in"));
  EXPECT_THAT(run("show mnist --count 1" + data), HasSubstr("the fixed binarization in the .amat files of"));
}

}  // namespace
}  // namespace hone
