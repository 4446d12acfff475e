#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>

#include "hone/base/parallel.hpp"

namespace hone {

// A group of data [begin, end), of which the first `wanted` are needed.
struct DataGroup {
  int begin, end, wanted;
  int count() const { return end - begin; }
};

// The team shares the first `wanted` of `data` data in groups of `size`. Groups are always cut from all data, so a
// datum's result depends neither on `wanted` nor on the number of threads. Each thread makes a worker and gives it one
// group after another; `progress` is told how many data are done.
template <class MakeWorker>
void for_groups(Team& team, int size, int data, int wanted, const std::function<void(int)>& progress,
                MakeWorker&& make_worker) {
  std::atomic<int> next = 0;
  std::mutex mutex;
  int done = 0;
  team.for_shares(team.threads(), [&](int, int, int) {
    auto worker = make_worker();
    for (;;) {
      const int begin = size * next++;
      if (begin >= wanted) return;
      const int end = std::min(data, begin + size);
      const DataGroup group{begin, end, std::min(wanted, end) - begin};
      worker(group);
      const std::lock_guard lock(mutex);
      done += group.wanted;
      if (progress) progress(done);
    }
  });
}

}  // namespace hone
