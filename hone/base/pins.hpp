#pragma once

#include <thread>
#include <vector>

namespace hone {

// One CPU for each thread of a team, as the environment variable HONE_PIN says: "all" that the process may use, or a
// list such as "0-7" or "0,2,4"; ranks that are not bound share them out (cpus.hpp). Not set: threads are not pinned.
// The calling thread, thread 0, is pinned until the last of its teams goes. A team that is made inside a share of
// another team shares the CPUs with all others instead: its threads may run anywhere.
class Pins {
 public:
  // Throws InputError if HONE_PIN says something else or has fewer CPUs than threads; Error if the system refuses.
  Pins(int threads, bool inside_another);
  ~Pins();
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  void add(std::jthread& worker, int thread) const;

 private:
  std::vector<int> cpus_;  // empty: not pinned
  bool free_;
  int caller_ = 0;  // the system's number of the calling thread
};

}  // namespace hone
