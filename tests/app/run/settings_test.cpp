#include "app/run/settings.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

enum class Colour { red, green };

struct Config {
  int count = 3;
  double rate = 0.5;
  Colour colour = Colour::red;
  std::optional<double> size;
  std::uint64_t seed = 1;
  std::string name = "plain";
  std::vector<int> widths = {200, 100};
  std::optional<std::vector<int>> more;
};

Settings settings_of(Config& config) {
  Settings s;
  s.add("count", config.count, Bounds::at_least(1), "how many");
  s.add("rate", config.rate, Bounds::between(0, 1), "how fast");
  s.add("colour", config.colour, {{"red", Colour::red}, {"green", Colour::green}}, "which");
  s.add("box.size", config.size, Bounds::positive(), "how large", "derived");
  s.add("seed", config.seed, Bounds::at_least(0), "seed");
  s.add("name", config.name, "any text", "what it is called");
  s.add("widths", config.widths, Bounds::between(1, 1000), "how wide");
  s.add("more", config.more, Bounds::between(1, 1000), "how wide above", "derived");
  return s;
}

std::string error_of(const std::string& key, const std::string& text) {
  Config config;
  try {
    settings_of(config).set(key, text, "--" + key);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Settings, BoundsAreDescribedExactly) {
  double number = 0.5;
  std::uint64_t seed = 1;
  Settings s;
  s.add("closed", number, Bounds{0, 1}, "");
  s.add("open_low", number, Bounds{0, 1, true}, "");
  s.add("open_high", number, Bounds{.low = 0, .high = 1, .open_high = true}, "");
  s.add("open", number, Bounds::inside(0, 1), "");
  s.add("seed", seed, Bounds{0, 1e18}, "");
  std::vector<std::string> takes;
  for (const Settings::Entry& entry : s.entries()) takes.push_back(entry.takes);
  EXPECT_EQ(takes, (std::vector<std::string>{"a number from 0 to 1", "a number above 0 and at most 1",
                                             "a number of at least 0 and below 1", "a number strictly between 0 and 1",
                                             "an integer from 0 to 1000000000000000000"}));
}

TEST(Settings, ErrorsNameTheKeyAndWhatIsAllowed) {
  EXPECT_EQ(error_of("count", "0"), "--count: '0' is not allowed; expected an integer, at least 1");
  EXPECT_EQ(error_of("count", "2.5"), "--count: '2.5' is not allowed; expected an integer, at least 1");
  EXPECT_EQ(error_of("count", ""), "--count: '' is not allowed; expected an integer, at least 1");
  EXPECT_EQ(error_of("count", "99999999999999999999"),
            "--count: '99999999999999999999' is not allowed; expected an integer, at least 1");
  EXPECT_EQ(error_of("rate", "nan"), "--rate: 'nan' is not allowed; expected a number from 0 to 1");
  EXPECT_EQ(error_of("rate", "inf"), "--rate: 'inf' is not allowed; expected a number from 0 to 1");
  EXPECT_EQ(error_of("box.size", "0"), "--box.size: '0' is not allowed; expected a number above 0");
  EXPECT_EQ(error_of("colour", "gren"),
            "--colour: 'gren' is not allowed; expected one of red, green; did you mean 'green'?");
  EXPECT_EQ(error_of("colour", "RED"),
            "--colour: 'RED' is not allowed; expected one of red, green; did you mean 'red'?");
  EXPECT_EQ(error_of("cuont", "1"), "--cuont: there is no key 'cuont'; did you mean 'count'?");
  EXPECT_EQ(error_of("seed", "-1"), "--seed: '-1' is not allowed; expected an integer, at least 0");
  EXPECT_EQ(error_of("count", "7"), "");
  EXPECT_EQ(error_of("name", ""), "--name: '' is not allowed; expected any text");
  const std::string list = "expected a list (may be empty) of integers from 1 to 1000";
  for (const std::string bad : {"0", "1,", ",", "1,,2", "2.5", "1 2", "x", "1001", "[1", "1]"})
    EXPECT_EQ(error_of("widths", bad), "--widths: '" + bad + "' is not allowed; " + list);
}

TEST(Settings, ListsAndTextsReadAsFlagsGiveThem) {
  Config config;
  Settings settings = settings_of(config);
  for (const std::string text : {"5,6", "5, 6", "[5,6]", "[5, 6]"}) {
    config.widths = {};
    settings.set("widths", text, "--widths");
    EXPECT_EQ(config.widths, (std::vector{5, 6})) << text;
  }
  settings.set("widths", "", "--widths");
  EXPECT_TRUE(config.widths.empty());
  EXPECT_EQ(settings.text("widths"), "[]");
  EXPECT_FALSE(config.more);
  settings.set("more", "[]", "--more");
  EXPECT_TRUE(config.more && config.more->empty());
  settings.set("name", "a \"quoted\" one", "--name");
  EXPECT_EQ(config.name, "a \"quoted\" one");
  EXPECT_EQ(settings.text("colour"), "red");
  EXPECT_EQ(settings.text("count"), "3");
}

std::string file_error(const std::string& content) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "c.toml", content);
  Config config;
  try {
    settings_of(config).read_file(folder.path() / "c.toml");
  } catch (const InputError& error) {
    const std::string text = error.what();
    return text.substr(text.find("c.toml"));
  }
  return "";
}

TEST(Settings, AFilesErrorsNameLineAndKey) {
  EXPECT_EQ(file_error("count = 2\nrate = 3.0\n"), "c.toml:2: rate: '3' is not allowed; expected a number from 0 to 1");
  EXPECT_EQ(file_error("\n\nrates = 0.5\n"), "c.toml:3: there is no key 'rates'; did you mean 'rate'?");
  EXPECT_EQ(file_error("count = \"two\"\n"), "c.toml:1: count: 'two' is not allowed; expected an integer, at least 1");
  EXPECT_EQ(file_error("count = 2.5\n"), "c.toml:1: count: 2.5 is not allowed; expected an integer, at least 1");
  EXPECT_EQ(file_error("[box]\nsizes = 1.0\n"), "c.toml:2: there is no key 'box.sizes'; did you mean 'box.size'?");
  EXPECT_NE(file_error("count = = 2\n").find("c.toml:1: "), std::string::npos);
  EXPECT_EQ(file_error("widths = 3\n"),
            "c.toml:1: widths: 3 is not allowed; expected a list (may be empty) of integers from 1 to 1000");
  EXPECT_NE(file_error("widths = [3, 2.5]\n").find("c.toml:1: widths: [ 3, 2.5 ] is not allowed"), std::string::npos);
  EXPECT_NE(file_error("widths = [3, 0]\n").find("c.toml:1: widths: '3,0' is not allowed"), std::string::npos);
  EXPECT_NE(file_error("name = 3\n").find("c.toml:1: name: 3 is not allowed; expected any text"), std::string::npos);
  EXPECT_NE(file_error("count = [3]\n").find("c.toml:1: count: [ 3 ] is not allowed"), std::string::npos);
  EXPECT_EQ(file_error("rate = {}\n"), "c.toml:1: rate: a table is not allowed; expected a number from 0 to 1");
  EXPECT_EQ(file_error("[rate]\n"), "c.toml:1: rate: a table is not allowed; expected a number from 0 to 1");
  EXPECT_EQ(file_error("rate = { x = 1 }\n"), "c.toml:1: there is no key 'rate.x'; did you mean 'rate'?");
  EXPECT_EQ(file_error("[boxes]\n"), "c.toml:1: there is no key 'boxes'");
  EXPECT_EQ(file_error("[box]\n"), "");  // an empty table
  EXPECT_EQ(file_error("widths = []\nmore = [7]\nname = \"x\"\n"), "");
  EXPECT_EQ(file_error("count = 2\nrate = 1  # an integer is a number\n"), "");
}

TEST(Settings, AKeysErrorIsLocatedWhereItWasSet) {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "c.toml").string();
  write_file(path, "count = 2\n\nrate = 0.25\n[box]\nsize = 3\n");
  Config config;
  Settings settings = settings_of(config);
  const auto located = [&](const std::string& key) {
    return std::string(settings.located(KeyError(key, "is too much")).what());
  };
  EXPECT_EQ(located("rate"), "rate: is too much");
  settings.read_file(path);
  EXPECT_EQ(located("rate"), path + ":3: rate: is too much");
  EXPECT_EQ(located("box.size"), path + ":5: box.size: is too much");
  settings.set("rate", "0.5", "--rate");
  EXPECT_EQ(located("rate"), "--rate: is too much");
  EXPECT_EQ(located("seed"), "seed: is too much");
}

TEST(Settings, AMissingFileIsNamed) {
  Config config;
  EXPECT_THROW(settings_of(config).read_file("/nonexistent/c.toml"), InputError);
}

TEST(Settings, WhatIsWrittenReadsBackTheSame) {
  const test::TemporaryFolder folder;
  Config first;
  first.count = 12;
  first.rate = 0.1 + 0.2;
  first.colour = Colour::green;
  first.size = 1e-7;
  first.seed = 12345678901234567ull;
  first.name = "back\\slash, \"quotes\", 'others', µ\n";
  first.widths = {};
  first.more = {3, 4, 5};
  const std::string text = settings_of(first).to_toml();
  write_file(folder.path() / "c.toml", text);
  Config second;
  Settings settings = settings_of(second);
  settings.read_file(folder.path() / "c.toml");
  EXPECT_EQ(settings.to_toml(), text);
  EXPECT_EQ(second.rate, first.rate);
  EXPECT_EQ(second.seed, first.seed);
  EXPECT_EQ(second.name, first.name);
  EXPECT_EQ(second.widths, first.widths);
  EXPECT_EQ(second.more, first.more);
}

}  // namespace
}  // namespace hone
