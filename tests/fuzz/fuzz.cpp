// One program per reader: HONE_FUZZ_READER names it.
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>

#include "tests/fuzz/readers.hpp"

// The address sanitizer asks the kernel for the signal stack at every throw, a tenth of the time of a short input.
// Nobody else sets one, so we remember it.
extern "C" __attribute__((no_sanitize("address", "undefined"))) int sigaltstack(const stack_t* set, stack_t* old) {
  static thread_local stack_t now = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  if (old) *old = now;
  if (!set) return 0;
  now = *set;
  return static_cast<int>(::syscall(SYS_sigaltstack, set, nullptr));
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hone::fuzz::HONE_FUZZ_READER({data, size});
  return 0;
}
