#pragma once

#include <functional>
#include <memory>

namespace hone {

/// A fixed number of threads of this process that share the work on ranges of independent items. The split only decides
/// which thread computes an item, so results must not depend on it: a thread that was slow of late gets fewer items. A
/// team of one is the calling thread itself and costs nothing.
class Team {
 public:
  /// Starts `threads` − 1 threads; the calling thread is the other one. At least 1. The environment variable HONE_PIN
  /// pins each to one CPU: "all" takes those that the process may use, in order; "0-7" or "0,2,4" names them. Throws
  /// InputError if it says something else, or names fewer CPUs than threads.
  explicit Team(int threads);
  /// Ends the threads.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// How many threads the team has, the caller included.
  int threads() const;

  /// Calls share(begin, end, thread) on disjoint ranges that cover [0, items), and returns when all are done. With as
  /// many items as threads, each has one. If shares throw, the first exception reaches the caller.
  template <class Share>
  void for_shares(int items, Share&& share) {
    if (threads() == 1 || items <= 1) {
      share(0, items, 0);
    } else {
      run(items, std::ref(share));  // a reference fits into std::function without an allocation
    }
  }

 private:
  void run(int items, const std::function<void(int, int, int)>& share);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone
