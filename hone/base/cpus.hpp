#pragma once

#include <sched.h>

#include <vector>

namespace hone {

// The CPUs that the system lets this process use, as found by the first call, before a team pinned its threads. False
// if the system does not say.
bool allowed_cpus(cpu_set_t& set);

// The CPUs that this process should use: all of these, or its share where several ranks of one machine may use the same
// ones, because their launcher did not bind them. In ascending order, at least one.
const std::vector<int>& own_cpus();

// This process's share of these CPUs of the machine: all of them, unless it is one of several ranks that are not bound.
// Ranks take them in order; where there are more ranks than CPUs, some share one.
std::vector<int> own_share(const std::vector<int>& cpus);

// Threads for a process: one per CPU of its own.
inline int default_threads() { return static_cast<int>(own_cpus().size()); }

}  // namespace hone
