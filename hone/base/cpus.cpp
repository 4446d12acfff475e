#include "hone/base/cpus.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <thread>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/ranks.hpp"

namespace hone {
namespace {

std::optional<cpu_set_t> cpus_of(long process) {
  cpu_set_t set;
  if (sched_getaffinity(static_cast<pid_t>(process), sizeof set, &set) != 0) return {};
  return set;
}

// A file of /proc, which may be another user's; empty then.
std::string read_or_nothing(long process, const char* file) {
  try {
    return read_file("/proc/" + std::to_string(process) + "/" + file);
  } catch (const Error&) {
    return {};
  }
}

long parent_of(long process) {
  const std::string text = read_or_nothing(process, "stat");  // "NUMBER (NAME) STATE PARENT …"
  const std::size_t name_end = text.rfind(") ");
  return name_end == std::string::npos ? 0 : std::atol(text.c_str() + std::min(text.size(), name_end + 4));
}

// The process that started the ranks of this machine: the first one above this whose environment has no rank. Scripts
// between them have this rank's.
long launcher() {
  constexpr std::array numbers = {"OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK="};
  long process = parent_of(getpid());
  for (int generation = 0; process > 1 && generation < 20; ++generation) {
    const std::string environment = '\0' + read_or_nothing(process, "environ");
    if (std::ranges::none_of(
            numbers, [&](const char* name) { return environment.find('\0' + std::string(name)) != std::string::npos; }))
      break;
    process = parent_of(process);
  }
  return process;
}

// Whether the launcher left to the ranks all CPUs that it may use itself: they share them then.
bool unbound(const cpu_set_t& own) {
  if (CPU_COUNT(&own) >= sysconf(_SC_NPROCESSORS_CONF)) return true;
  const long process = launcher();
  const std::optional<cpu_set_t> all = process > 1 ? cpus_of(process) : std::nullopt;
  return all && CPU_EQUAL(&own, &*all);
}

}  // namespace

bool allowed_cpus(cpu_set_t& set) {
  static const std::optional<cpu_set_t> allowed = cpus_of(0);
  if (allowed) set = *allowed;
  return allowed.has_value();
}

std::vector<int> own_share(const std::vector<int>& cpus) {
  cpu_set_t allowed;
  const int ranks = ranks_here();
  if (ranks < 2 || cpus.empty() || (allowed_cpus(allowed) && !unbound(allowed))) return cpus;
  const auto bound = [&](int rank) {
    return static_cast<std::ptrdiff_t>(static_cast<std::int64_t>(cpus.size()) * rank / ranks);
  };
  const int rank = local_rank() % ranks;
  const std::ptrdiff_t begin = bound(rank), end = std::max(begin + 1, bound(rank + 1));
  return {cpus.begin() + begin, cpus.begin() + end};
}

const std::vector<int>& own_cpus() {
  static const std::vector<int> own = [] {
    std::vector<int> cpus;
    cpu_set_t allowed;
    if (allowed_cpus(allowed)) {
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
    } else {
      cpus.resize(std::max(1u, std::thread::hardware_concurrency()));
      std::iota(cpus.begin(), cpus.end(), 0);
    }
    return own_share(cpus);
  }();
  return own;
}

}  // namespace hone
