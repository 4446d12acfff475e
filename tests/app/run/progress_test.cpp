#include "app/run/progress.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace hone {
namespace {

std::string shown(ProgressStyle style) {
  std::FILE* file = std::tmpfile();
  {
    Progress progress(file, style, "fit", "iterations", 100);
    for (int i = 1; i <= 100; ++i) progress.update(i, "vcd 1.5");
  }
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

TEST(Progress, PlainLinesComeNowAndThen) {
  const std::string text = shown(ProgressStyle::plain);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_NE(text.find("fit   20 %  20/100 iterations"), std::string::npos);
  EXPECT_NE(text.find("vcd 1.5"), std::string::npos);
  EXPECT_NE(text.find("left"), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

TEST(Progress, ALiveLineIsRewrittenAndEnded) {
  const std::string text = shown(ProgressStyle::live);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_NE(text.find("100 %"), std::string::npos);
  EXPECT_NE(text.find("█"), std::string::npos);
}

TEST(Progress, AFinishIsAllThereWas) {
  std::FILE* file = std::tmpfile();
  {
    Progress progress(file, ProgressStyle::plain, "fit", "gradients", 4'000'000);
    progress.update(70'000, "refining");
    progress.finish(84'207);
  }
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_EQ(text.rfind("fit  100 %  84207/84207 gradients", 0), 0u) << text;
}

// A budget of seconds ends with the seconds that were taken, and is no forecast.
TEST(Progress, ALimitIsNoForecast) {
  std::FILE* file = std::tmpfile();
  {
    Progress progress(file, ProgressStyle::plain, "fit", "seconds", 5, ProgressEnd::at_most);
    progress.update(3, "");
    progress.finish(4);
  }
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  EXPECT_EQ(text.rfind("fit   60 %  3/5 seconds, at most ", 0), 0u) << text;
  EXPECT_NE(text.find(" left\nfit  100 %  "), std::string::npos) << text;
  EXPECT_EQ(text.find("4/4"), std::string::npos) << text;
}

TEST(Progress, ALiveLineFitsTheTerminal) {
  ::setenv("COLUMNS", "40", 1);
  const std::string text = shown(ProgressStyle::live);
  ::unsetenv("COLUMNS");
  const std::string last = text.substr(text.rfind("\x1b[K") + 3);
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  EXPECT_LE(std::count_if(last.begin(), last.end() - 1, begins), 39) << last;
  EXPECT_NE(last.find("100 %"), std::string::npos);
}

TEST(Progress, QuietIsSilent) { EXPECT_EQ(shown(ProgressStyle::quiet), ""); }

TEST(DurationText, ReadsWell) {
  EXPECT_EQ(duration_text(0.85), "850 ms");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(245), "4 min 05 s");
  EXPECT_EQ(duration_text(7800), "2 h 10 min");
}

}  // namespace
}  // namespace hone
