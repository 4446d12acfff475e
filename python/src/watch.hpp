#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace hone::python {

namespace nb = nanobind;

// Ends long work early, with what there is. A signal handler in Python sets it.
struct Stop {
  std::atomic<bool> set = false;
  std::atomic<int> signal = 0;  // for work that asks for the signal
};

// Tells Python how far long work is, and lets Python run its signal handlers, about twenty times per second. Long work
// runs without the GIL; this takes it. Only the thread that started the work tells; on others it does nothing.
class Watch {
 public:
  explicit Watch(nb::object tell) : tell_(std::move(tell)) {}

  void tick(std::int64_t done);                          // cheap where it is not time yet
  void say(const std::string& text, std::int64_t done);  // at once

 private:
  void call(std::int64_t done);

  nb::object tell_;  // called with (text, done); None: nothing to tell
  std::thread::id thread_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::string text_;
};

}  // namespace hone::python
