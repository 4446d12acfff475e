#pragma once

#include <atomic>
#include <csignal>

namespace hone {

// The signal that asked the program to stop; 0: none so far.
extern std::atomic<int> stop_signal;

// While it lives, Ctrl-C and SIGTERM are only recorded, so that the work can stop cleanly; a second one ends the
// program at once. With `seconds` above 0, SIGALRM arrives after that time and is recorded too.
class SignalNote {
 public:
  explicit SignalNote(unsigned seconds = 0);
  ~SignalNote();
  SignalNote(const SignalNote&) = delete;
  SignalNote& operator=(const SignalNote&) = delete;

 private:
  struct sigaction interrupt_ = {}, terminate_ = {}, alarm_ = {};
};

}  // namespace hone
