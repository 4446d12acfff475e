#pragma once

#include <functional>
#include <memory>

namespace hone {

// A fixed team of threads that share out ranges of independent items. The split decides only who computes an item,
// so what is computed must not depend on it. A team of one is the calling thread itself and costs nothing.
class Team {
 public:
  explicit Team(int threads);  // at least 1
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const;

  // Calls share(begin, end, thread) on disjoint ranges that cover [0, items), and returns when all are done.
  // An exception from a share reaches the caller (the first one, if several shares throw).
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
