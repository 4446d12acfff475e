#include "hone/run/settings.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/error.hpp"
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
};

Settings settings_of(Config& config) {
  Settings s;
  s.add("count", config.count, Bounds::at_least(1), "how many");
  s.add("rate", config.rate, Bounds::between(0, 1), "how fast");
  s.add("colour", config.colour, {{"red", Colour::red}, {"green", Colour::green}}, "which");
  s.add("box.size", config.size, Bounds::positive(), "how large", "derived");
  s.add("seed", config.seed, Bounds::at_least(0), "seed");
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

TEST(Settings, ErrorsNameTheKeyAndWhatIsAllowed) {
  EXPECT_EQ(error_of("count", "0"), "--count: '0' is not allowed; expected an integer, at least 1");
  EXPECT_EQ(error_of("count", "2.5"), "--count: '2.5' is not allowed; expected an integer, at least 1");
  EXPECT_EQ(error_of("count", ""), "--count: '' is not allowed; expected an integer, at least 1");
  EXPECT_EQ(error_of("count", "99999999999999999999"), "--count: '99999999999999999999' is not allowed; expected an integer, at least 1");
  EXPECT_EQ(error_of("rate", "nan"), "--rate: 'nan' is not allowed; expected a number from 0 to 1");
  EXPECT_EQ(error_of("rate", "inf"), "--rate: 'inf' is not allowed; expected a number from 0 to 1");
  EXPECT_EQ(error_of("box.size", "0"), "--box.size: '0' is not allowed; expected a number above 0");
  EXPECT_EQ(error_of("colour", "gren"),
            "--colour: 'gren' is not allowed; expected one of red, green; did you mean 'green'?");
  EXPECT_EQ(error_of("cuont", "1"), "--cuont: there is no key 'cuont'; did you mean 'count'?");
  EXPECT_EQ(error_of("seed", "-1"), "--seed: '-1' is not allowed; expected an integer, at least 0");
  EXPECT_EQ(error_of("count", "7"), "");
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
  EXPECT_EQ(file_error("count = 2\nrate = 1  # an integer is a number\n"), "");
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
  const std::string text = settings_of(first).to_toml();
  write_file(folder.path() / "c.toml", text);
  Config second;
  Settings settings = settings_of(second);
  settings.read_file(folder.path() / "c.toml");
  EXPECT_EQ(settings.to_toml(), text);
  EXPECT_EQ(second.rate, first.rate);
  EXPECT_EQ(second.seed, first.seed);
}

}  // namespace
}  // namespace hone
