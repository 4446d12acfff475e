#pragma once

#include <atomic>
#include <csignal>
#include <functional>

#include "app/cli/commands.hpp"
#include "hone/base/error.hpp"

namespace hone {

// The signal that asked the program to stop; 0: none so far.
extern std::atomic<int> stop_signal;
extern std::atomic<bool> stop_asked;  // whether there was one

// While it lives, Ctrl-C, SIGTERM and SIGUSR1 are only recorded, so that the work can stop cleanly; a second one ends
// the program at once. With `seconds` above 0, SIGALRM arrives after that time and is recorded too.
class SignalNote {
 public:
  explicit SignalNote(unsigned seconds = 0);
  ~SignalNote();
  SignalNote(const SignalNote&) = delete;
  SignalNote& operator=(const SignalNote&) = delete;

 private:
  struct sigaction interrupt_ = {}, terminate_ = {}, user_ = {}, alarm_ = {};
};

// Runs work(stop) and returns its result; stop() is true after Ctrl-C, SIGTERM or SIGUSR1. If the work then throws
// Stopped, the program ends as it would have by the signal.
template <class Work>
auto until_signal(Work&& work) {
  const SignalNote note;
  try {
    return work(std::function<bool()>([] { return stop_signal != 0; }));
  } catch (const Stopped&) {
    throw Ended{128 + stop_signal};
  }
}

}  // namespace hone
