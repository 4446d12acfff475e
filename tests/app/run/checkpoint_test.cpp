#include "app/run/checkpoint.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "app/run/safetensors.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

Checkpoint sample(std::uint32_t iteration) {
  Checkpoint checkpoint;
  checkpoint.identity = {{"latent", "3"}, {"model", "\"vae\""}};
  checkpoint.state = {iteration,
                      0.1,
                      {{"decoder.weight[0]", {1, 2}, std::vector<float>{1, 2}},
                       {"baseline.second", {3}, std::vector<double>{4, 5, 6}}}};
  for (const double x : {1.5, 2.25, 1e-3}) checkpoint.counters.interval.elbo.add(x);
  checkpoint.counters.last.vcd.add(7);
  checkpoint.counters.reported = 9;
  checkpoint.counters.dropped_draws = 2;
  return checkpoint;
}

struct Heard {
  std::string text;
  std::function<void(const std::string&)> say = [this](const std::string& words) { text += words + "\n"; };
};

TEST(Checkpoint, ReadsBackBitForBit) {
  const auto bytes = encode(sample(10));
  const Checkpoint back = decode_checkpoint(bytes, "f");
  EXPECT_EQ(encode(back), bytes);
  EXPECT_EQ(back.state.iteration, 10u);
  EXPECT_EQ(back.counters.interval.elbo.raw().squares, sample(10).counters.interval.elbo.raw().squares);
  EXPECT_EQ(back.identity, sample(10).identity);
}

TEST(Checkpoint, AFileOfSomethingElseIsRefused) {
  EXPECT_THROW(decode_checkpoint(to_safetensors({}), "f"), InputError);
  const std::string header = "{}      ";
  std::vector<std::uint8_t> bytes(8);
  bytes[0] = 8;
  bytes.insert(bytes.end(), header.begin(), header.end());
  EXPECT_THROW(decode_checkpoint(bytes, "f"), InputError);
}

TEST(Checkpoint, ThePreviousOneIsKeptAndFoundWhereTheNewestIsDamaged) {
  const test::TemporaryFolder folder;
  const fs::path current = folder.path() / checkpoint_name, previous = folder.path() / previous_checkpoint_name;
  Heard heard;
  EXPECT_FALSE(find_checkpoint(folder.path(), heard.say));
  write_checkpoint(folder.path(), sample(10));
  write_checkpoint(folder.path(), sample(20));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
  EXPECT_EQ(find_checkpoint(folder.path(), heard.say)->checkpoint.state.iteration, 20u);
  EXPECT_EQ(heard.text, "");
  const std::string good = read_file(current);
  write_file(current, good.substr(0, good.size() / 2));
  EXPECT_EQ(find_checkpoint(folder.path(), heard.say)->checkpoint.state.iteration, 10u);
  EXPECT_NE(heard.text.find(current.string()), std::string::npos);
  EXPECT_NE(heard.text.find(previous.string() + ", iteration 10"), std::string::npos);
  set_aside_damaged(folder.path());
  heard.text = "";
  EXPECT_EQ(find_checkpoint(folder.path(), heard.say)->checkpoint.state.iteration, 10u);
  EXPECT_NE(heard.text.find("missing"), std::string::npos);
  write_file(current, "x");
  write_file(previous, "y");
  EXPECT_THROW(find_checkpoint(folder.path(), heard.say), InputError);
}

// A second process sees a complete checkpoint at any time.
TEST(Checkpoint, TheNewestIsThereAtAnyMoment) {
  const test::TemporaryFolder folder;
  write_checkpoint(folder.path(), sample(1));
  std::atomic<bool> done = false;
  int seen = 0, missing = 0;
  std::thread watcher([&] {
    for (; !done; ++seen)
      if (::access((folder.path() / checkpoint_name).c_str(), R_OK) != 0) ++missing;
  });
  for (std::uint32_t i = 2; i < 60; ++i) write_checkpoint(folder.path(), sample(i));
  done = true;
  watcher.join();
  EXPECT_GT(seen, 0);
  EXPECT_EQ(missing, 0);
}

// A run killed just after the hard link was made finds the same file under both names.
TEST(Checkpoint, BothNamesMayBeOneFile) {
  const test::TemporaryFolder folder;
  write_checkpoint(folder.path(), sample(10));
  fs::create_hard_link(folder.path() / checkpoint_name, folder.path() / previous_checkpoint_name);
  write_checkpoint(folder.path(), sample(20));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
  EXPECT_EQ(find_checkpoint(folder.path(), [](const std::string&) {})->checkpoint.state.iteration, 20u);
  const std::string previous = read_file(folder.path() / previous_checkpoint_name);
  const auto bytes = encode(sample(10));
  EXPECT_EQ(previous, std::string(bytes.begin(), bytes.end()));
}

TEST(Checkpoint, OnAFullDiskTheErrorNamesTheCheckpointAndTheOldOneStands) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const test::TemporaryFolder folder;
  const fs::path current = folder.path() / checkpoint_name;
  write_checkpoint(folder.path(), sample(10));
  fs::create_symlink("/dev/full", unfinished_name(current));
  try {
    write_checkpoint(folder.path(), sample(20));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), current.string() + ": writing failed: No space left on device");
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  EXPECT_EQ(find_checkpoint(folder.path(), [](const std::string&) {})->checkpoint.state.iteration, 10u);
}

TEST(Checkpoint, AnotherModelIsRefusedByKeyAndBothValues) {
  const auto stored = sample(1).identity;
  check_identity("c", stored, stored);
  try {
    check_identity("c", stored, {{"latent", "4"}, {"model", "\"vae\""}});
    FAIL();
  } catch (const KeyError& error) {
    EXPECT_EQ(error.key(), "latent");
    EXPECT_EQ(error.message(), "c has latent = 3, which is now 4; this defines the model and cannot change");
  }
  EXPECT_THROW(check_identity("c", stored, {{"latent", "3"}}), InputError);
  // Other data may follow from another key, which is named first.
  const auto key_of = [](const std::map<std::string, std::string>& now) {
    try {
      check_identity("c", {{"data.sha256", "12"}, {"split", "0.1"}}, now);
    } catch (const KeyError& error) {
      return error.key();
    }
    return std::string();
  };
  EXPECT_EQ(key_of({{"data.sha256", "34"}, {"split", "0.1"}}), "data");
  EXPECT_EQ(key_of({{"data.sha256", "34"}, {"split", "0.2"}}), "split");
  check_identity("c", {{"data", "\"/a/b/../c.csv\""}}, {{"data", "\"/a/c.csv\""}});
  EXPECT_THROW(check_identity("c", {{"data", "\"/a/b.csv\""}}, {{"data", "\"/a/c.csv\""}}), InputError);
}

}  // namespace
}  // namespace hone
