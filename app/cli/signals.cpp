#include "app/cli/signals.hpp"

#include <unistd.h>

namespace hone {

std::atomic<int> stop_signal = 0;
std::atomic<bool> stop_asked = false;

SignalNote::SignalNote(unsigned seconds) {
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    stop_signal = signal;
    stop_asked = true;
  };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
  sigaction(SIGUSR1, &action, &user_);
  sigaction(SIGALRM, &action, &alarm_);
  ::alarm(seconds);
}

SignalNote::~SignalNote() {
  ::alarm(0);
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  sigaction(SIGUSR1, &user_, nullptr);
  sigaction(SIGALRM, &alarm_, nullptr);
}

}  // namespace hone
