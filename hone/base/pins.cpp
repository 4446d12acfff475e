#include "hone/base/pins.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <string>

#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/ranks.hpp"

namespace hone {
namespace {

// The CPUs that the process may use when its first team is made. Threads that a team pins use fewer.
cpu_set_t known_cpus() {
  cpu_set_t set;
  if (!allowed_cpus(set)) throw Error("HONE_PIN: the system does not say which CPUs are free to use");
  return set;
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
  const cpu_set_t allowed = known_cpus();
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
      if (!CPU_ISSET(cpu, &allowed)) throw wrong("this process may not use CPU " + std::to_string(cpu) + "; ");
      if (std::ranges::count(cpus, cpu) > 0) throw wrong("it has CPU " + std::to_string(cpu) + " twice; ");
      cpus.push_back(cpu);
    }
    if (at == end) return cpus;
    if (*at++ != ',') throw wrong("");
  }
}

// The CPUs that the environment variable HONE_PIN names, this rank's share of them if ranks are not bound; none if
// threads are not to be pinned.
std::vector<int> wished_cpus() {
  const std::string wish = environment("HONE_PIN");
  if (wish.empty()) return {};
  known_cpus();
  return wish == "all" ? own_cpus() : own_share(listed_cpus(wish));
}

// Calling threads that are pinned: how many teams do so, and which CPUs the thread had before.
struct Caller {
  int teams = 0;
  cpu_set_t before;
};
std::mutex callers_mutex;
std::map<int, Caller>& callers() {
  static std::map<int, Caller> all;
  return all;
}

}  // namespace

Pins::Pins(int threads, bool inside_another) : cpus_(wished_cpus()), free_(inside_another) {
  if (cpus_.empty() || free_) return;
  if (cpus_.size() < static_cast<std::size_t>(threads))
    throw InputError(
        "HONE_PIN has " + std::to_string(cpus_.size()) + (cpus_.size() == 1 ? " CPU for " : " CPUs for ") +
        std::to_string(threads) + " threads" +
        (ranks_here() > 1 ? " of this rank, one of " + std::to_string(ranks_here()) + " on this machine" : "") +
        "; use fewer threads, or leave HONE_PIN out");
  caller_ = gettid();
  const std::lock_guard lock(callers_mutex);
  Caller& caller = callers()[caller_];
  if (caller.teams == 0 && sched_getaffinity(0, sizeof caller.before, &caller.before) != 0)
    caller.before = known_cpus();
  pin(pthread_self(), only(cpus_.front()));
  ++caller.teams;
}

Pins::~Pins() {  // on any thread; the calling one may have ended
  if (cpus_.empty() || free_) return;
  const std::lock_guard lock(callers_mutex);
  const auto caller = callers().find(caller_);
  if (--caller->second.teams > 0) return;
  sched_setaffinity(caller_, sizeof(cpu_set_t), &caller->second.before);
  callers().erase(caller);
}

void Pins::add(std::jthread& worker, int thread) const {
  if (cpus_.empty()) return;
  pin(worker.native_handle(), free_ ? known_cpus() : only(cpus_[static_cast<std::size_t>(thread)]));
}

}  // namespace hone
