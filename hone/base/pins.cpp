#include "hone/base/pins.hpp"

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

#ifdef __linux__

#include <pthread.h>
#include <sched.h>

#include <charconv>
#include <string>

namespace hone {
namespace {

// The CPUs that the process may use when its first team is made. Threads that a team pins use fewer.
const cpu_set_t& allowed_cpus() {
  static const cpu_set_t allowed = [] {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
      throw Error("HONE_PIN: the system does not say which CPUs are free to use");
    return set;
  }();
  return allowed;
}

void pin(pthread_t thread, const cpu_set_t& cpus) {
  if (const int code = pthread_setaffinity_np(thread, sizeof cpus, &cpus); code != 0)
    throw Error("HONE_PIN: the system refuses to pin a thread (error " + std::to_string(code) + ")");
}

cpu_set_t only(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return one;
}

// "3", "0-7" or "0,2,4-6": the CPUs in the order in which threads take them.
std::vector<int> listed_cpus(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return InputError("HONE_PIN is '" + text + "'; " + why + "expected 'all', or CPUs such as 0-7 or 0,2,4");
  };
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&] {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0 || value >= CPU_SETSIZE) throw wrong("");
    at = next;
    return value;
  };
  for (;;) {
    const int first = number();
    const int last = at < end && *at == '-' ? (++at, number()) : first;
    if (last < first) throw wrong("");
    for (int cpu = first; cpu <= last; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed_cpus())) throw wrong("this process may not use CPU " + std::to_string(cpu) + "; ");
      cpus.push_back(cpu);
    }
    if (at == end) return cpus;
    if (*at++ != ',') throw wrong("");
  }
}

// One CPU per thread, as the environment variable HONE_PIN says; empty if threads are not to be pinned.
std::vector<int> cpus_of_threads(int threads) {
  const std::string wish = environment("HONE_PIN");
  if (wish.empty()) return {};
  std::vector<int> cpus;
  if (wish == "all") {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed_cpus())) cpus.push_back(cpu);
  } else {
    cpus = listed_cpus(wish);
  }
  if (cpus.size() < static_cast<std::size_t>(threads))
    throw InputError("HONE_PIN has " + std::to_string(cpus.size()) + " CPUs for " + std::to_string(threads) +
                     " threads; use fewer threads, or leave HONE_PIN out");
  return cpus;
}

thread_local int pinned_teams = 0;  // that have pinned this thread as their calling one

}  // namespace

Pins::Pins(int threads, bool inside_another) : cpus_(cpus_of_threads(threads)), free_(inside_another) {
  if (cpus_.empty() || free_) return;
  pin(pthread_self(), only(cpus_.front()));
  ++pinned_teams;
}

Pins::~Pins() {
  if (cpus_.empty() || free_ || std::this_thread::get_id() != caller_ || --pinned_teams > 0) return;
  pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), &allowed_cpus());
}

void Pins::add(std::jthread& worker, int thread) const {
  if (cpus_.empty()) return;
  pin(worker.native_handle(), free_ ? allowed_cpus() : only(cpus_[static_cast<std::size_t>(thread)]));
}

}  // namespace hone

#else

namespace hone {

Pins::Pins(int, bool) : free_(true) {
  if (!environment("HONE_PIN").empty()) throw InputError("HONE_PIN: threads can be pinned on Linux only");
}
Pins::~Pins() = default;
void Pins::add(std::jthread&, int) const {}

}  // namespace hone

#endif
