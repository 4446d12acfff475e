#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "hone/base/error.hpp"

namespace hone::python {

namespace nb = nanobind;

// Ends long work early, with the result so far. A signal handler in Python sets it.
struct Stop {
  std::atomic<bool> set = false;
  std::atomic<int> signal = 0;  // for work that asks for the signal
};

// While Python shuts down, every watch and every density in Python throws Stopped: no thread may call it afterwards.
inline std::atomic<bool> leaving = false;

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

// Runs work(progress) on a thread of its own, and meanwhile lets Python tell and handle signals on this one, which must
// hold the GIL. `work` calls progress(done) now and then, on any thread and without the GIL: it throws Stopped when it
// is time to end. Returns the result of the work.
template <class Work>
auto attended(nb::object tell, const Stop& stop, Work work) {
  Watch watch(std::move(tell));
  std::atomic<bool> leave = false;
  std::atomic<int> done = 0;
  const std::function<void(int)> progress = [&](int now) {
    if (leave || stop.set) throw Stopped();
    done = now;
  };
  const nb::gil_scoped_release released;
  auto working =
      std::async(std::launch::async, [&] { return work(progress); });  // its end is waited for, come what may
  try {
    while (working.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) watch.tick(done);
  } catch (...) {
    leave = true;
    throw;
  }
  return working.get();
}

}  // namespace hone::python
