#include "app/run/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "app/run/terminal.hpp"

namespace hone {
namespace {

std::string bar(double fraction, int width) {
  const int full = static_cast<int>(std::lround(fraction * width));
  std::string text;
  for (int i = 0; i < width; ++i) text += i < full ? "█" : "░";
  return text;
}

}  // namespace

Progress::Progress(std::FILE* out, ProgressStyle style, std::string label, std::string unit, std::int64_t total,
                   ProgressEnd end)
    : out_(out),
      style_(style),
      label_(std::move(label)),
      unit_(std::move(unit)),
      total_(std::max<std::int64_t>(1, total)),
      end_(end) {}

Progress::~Progress() {
  if (line_open_) std::fputs("\n", out_);
}

ProgressStyle Progress::style_for(std::FILE* out, bool quiet) {
  if (quiet) return ProgressStyle::quiet;
  return ::isatty(::fileno(out)) ? ProgressStyle::live : ProgressStyle::plain;
}

void Progress::start_at(std::int64_t done) {
  started_at_ = done;
  watch_ = {};
  shown_at_ = -1;
}

std::string Progress::line(std::int64_t done, const std::string& note) const {
  const double fraction = static_cast<double>(done) / static_cast<double>(total_);
  const double seconds = watch_.seconds();
  const double pace = seconds > 0 ? static_cast<double>(done - started_at_) / seconds : 0;
  const bool timed = unit_ == "seconds";  // whose pace says nothing
  std::string text = fmt::format("{:3.0f} %  ", 100 * fraction);
  if (timed && done == total_) {
    text += duration_text(seconds);
  } else {
    text += fmt::format("{}/{} {}", done, total_, unit_);
    if (!timed) text += ", " + pace_text(pace) + "/s";
    if (done == total_) text += ", " + duration_text(seconds);
  }
  if (done < total_ && pace > 0)
    text += fmt::format(", {}{} left", end_ == ProgressEnd::at_most ? "at most " : "",
                        duration_text(static_cast<double>(total_ - done) / pace));
  if (!note.empty()) text += ", " + note;  // at the end, where a narrow terminal cuts
  if (style_ != ProgressStyle::live) return label_ + "  " + text;
  const int left = terminal_width(out_) - 1 - width_of(label_ + "   " + text);
  return label_ + "  " + bar(fraction, std::clamp(left, 5, 20)) + " " + text;
}

void Progress::update(std::int64_t done, const std::string& note) {
  if (style_ == ProgressStyle::quiet) return;
  const double now = watch_.seconds();
  const std::int64_t fifth = 5 * done / total_;
  const bool due = style_ == ProgressStyle::live ? now - shown_at_ > 0.1 : fifth > shown_fifth_ || now - shown_at_ > 30;
  if (!due && done != total_) return;
  if (style_ == ProgressStyle::live) {
    fmt::print(out_, "\r\x1b[K{}", cut_to(line(done, note), terminal_width(out_) - 1));
    line_open_ = true;
  } else {
    fmt::print(out_, "{}\n", line(done, note));
  }
  std::fflush(out_);
  shown_at_ = now;
  shown_fifth_ = fifth;
}

void Progress::finish(std::int64_t done) {
  total_ = std::max<std::int64_t>(1, done);
  update(total_, "");
}

void Progress::next(std::string label, std::string unit, std::int64_t total) {
  if (line_open_) std::fputs("\n", out_);
  line_open_ = false;
  label_ = std::move(label);
  unit_ = std::move(unit);
  total_ = std::max<std::int64_t>(1, total);
  shown_fifth_ = 0;
  start_at(0);
}

void Progress::remark(const std::string& text) {
  if (style_ == ProgressStyle::quiet) return;
  if (line_open_) fmt::print(out_, "\n");
  line_open_ = false;
  fmt::print(out_, "{}\n", text);
  std::fflush(out_);
}

std::string pace_text(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.1f} M", per_second / 1e6);
  if (per_second >= 1e4) return fmt::format("{:.0f} k", per_second / 1e3);
  return per_second >= 100 ? fmt::format("{:.0f}", per_second) : fmt::format("{:.3g}", per_second);
}

std::string duration_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", 1000 * seconds);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (seconds < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

void say_over_progress(const std::string& text) {
  const bool live = ::isatty(STDERR_FILENO);
  const std::string line = live ? "\r\x1b[K" + wrapped("", text, terminal_width(stderr)) : text + "\n";
  std::fputs(line.c_str(), stderr);
}

}  // namespace hone
