#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace hone {

// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

enum class ProgressStyle { live, plain, quiet };
enum class ProgressEnd { at_total, at_most };  // whether the total is the amount of work or only its limit

// Shows the progress of a job: one live line on a terminal (bar, rate, time left, a note), an occasional plain line
// elsewhere, nothing when quiet.
class Progress {
 public:
  // `unit` is what is counted: "iterations", "cells".
  Progress(std::FILE* out, ProgressStyle style, std::string label, std::string unit, std::int64_t total,
           ProgressEnd end = ProgressEnd::at_total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The work begins now, with `done` finished before; rate and time left refer to the rest.
  void start_at(std::int64_t done);

  // Cheap enough for every report interval. Shows at most ten lines per second, and always the last one.
  void update(std::int64_t done, const std::string& note);

  // The work has ended before its limit: shows `done` as the total.
  void finish(std::int64_t done);

  // Another piece of work follows; what is shown is only that from now on.
  void next(std::string label, std::string unit, std::int64_t total);

  // A line of its own, for instance on what follows the last unit.
  void remark(const std::string& text);

  static ProgressStyle style_for(std::FILE* out, bool quiet);

 private:
  std::string line(std::int64_t done, const std::string& note) const;

  std::FILE* out_;
  ProgressStyle style_;
  std::string label_, unit_;
  std::int64_t total_;
  ProgressEnd end_;
  std::int64_t started_at_ = 0;
  Stopwatch watch_;
  double shown_at_ = -1;
  std::int64_t shown_fifth_ = 0;
  bool line_open_ = false;
};

// "85.2", "850", "12 k", "1.3 M"
std::string pace_text(double per_second);

// "850 ms", "12.3 s", "4 min 05 s", "2 h 10 min"
std::string duration_text(double seconds);

// A line on stderr that takes the place of a live line of progress, if there is one.
void say_over_progress(const std::string& text);

}  // namespace hone
