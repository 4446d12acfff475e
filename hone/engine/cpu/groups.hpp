#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <span>

#include "hone/base/parallel.hpp"
#include "hone/engine/shared_groups.hpp"

namespace hone {

// A group of data [begin, end), of which the first `wanted` are needed.
struct DataGroup {
  int begin, end, wanted;
  int count() const { return end - begin; }
};

// The threads of this process, and the processes that share the work with it, if any.
struct Workers {
  Team& team;
  Ranks* ranks = nullptr;
};

// Threads share groups [own.begin, own.end). Each makes a worker and gives it one group after another; `progress` is
// told how many data are done, if the other ranks are as fast as this one. A group takes long, so the worker also gets
// a `beat` to call while it works: it calls `progress` again, which may throw Stopped.
template <class MakeWorker>
void for_own_groups(const Workers& workers, const Groups& groups, const ItemRange& own,
                    const std::function<void(int)>& progress, MakeWorker&& make_worker) {
  const int size = groups.size, data = groups.data, wanted = groups.wanted;
  const int ranks = workers.ranks ? workers.ranks->size() : 1;
  Team& team = workers.team;
  std::atomic<int> next = own.begin;
  std::mutex mutex;
  int done = 0;
  const std::function<void()> beat = [&] {
    if (!progress) return;
    const std::lock_guard lock(mutex);
    progress(std::min(wanted - 1, done * ranks));  // the last group is not done
  };
  team.for_shares(team.threads(), [&](int, int, int) {
    auto worker = make_worker();
    for (;;) {
      const int index = next++, begin = size * index;
      if (index >= own.end) return;
      const int end = std::min(data, begin + size);
      const DataGroup group{begin, end, std::min(wanted, end) - begin};
      worker(group, beat);
      const std::lock_guard lock(mutex);
      done += group.wanted;
      if (progress) progress(std::min(wanted, done * ranks));
    }
  });
}

// Workers share the first `wanted` data in groups, and then every rank has the results of all: points[i] is that of
// datum i. It does not depend on the number of workers.
template <class Point, class MakeWorker>
void for_groups(const Workers& workers, const Groups& groups, std::span<Point> points,
                const std::function<void(int)>& progress, MakeWorker&& make_worker) {
  share_groups(workers.ranks, groups, points,
               [&](const ItemRange& own) { for_own_groups(workers, groups, own, progress, make_worker); });
}

}  // namespace hone
