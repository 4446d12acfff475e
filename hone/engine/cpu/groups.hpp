#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/ranks.hpp"

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

// Data in groups of `size`, of which the first `wanted` data are needed.
struct Groups {
  int size, data, wanted;
};

// Workers share the first `wanted` data in groups. Groups are always cut from all data, so a datum's result depends
// neither on `wanted` nor on the number of workers. Each thread makes a worker and gives it one group after another;
// `progress` is told how many data are done, if the other ranks are as fast as this one.
template <class MakeWorker>
void for_own_groups(const Workers& workers, const Groups& groups, const std::function<void(int)>& progress,
                    MakeWorker&& make_worker) {
  const int size = groups.size, data = groups.data, wanted = groups.wanted;
  const ItemRange own = share_of((wanted + size - 1) / size, workers.ranks);
  const int ranks = workers.ranks ? workers.ranks->size() : 1;
  Team& team = workers.team;
  std::atomic<int> next = own.begin;
  std::mutex mutex;
  int done = 0;
  team.for_shares(team.threads(), [&](int, int, int) {
    auto worker = make_worker();
    for (;;) {
      const int index = next++, begin = size * index;
      if (index >= own.end) return;
      const int end = std::min(data, begin + size);
      const DataGroup group{begin, end, std::min(wanted, end) - begin};
      worker(group);
      const std::lock_guard lock(mutex);
      done += group.wanted;
      if (progress) progress(std::min(wanted, done * ranks));
    }
  });
}

// The same, and then every rank has the results of all: points[i] is that of datum i. If the work of a rank fails or is
// stopped, it fails on all of them.
template <class Point, class MakeWorker>
void for_groups(const Workers& workers, const Groups& groups, std::span<Point> points,
                const std::function<void(int)>& progress, MakeWorker&& make_worker) {
  if (!workers.ranks) return for_own_groups(workers, groups, progress, make_worker);
  Ranks& ranks = *workers.ranks;
  std::exception_ptr failure;
  try {
    for_own_groups(workers, groups, progress, make_worker);
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<char> failed(static_cast<std::size_t>(ranks.size()));
  failed[static_cast<std::size_t>(ranks.rank())] = failure != nullptr;
  gather_shares<char>(&ranks, failed, ranks.size(), Patience::unlimited);
  if (failure) std::rethrow_exception(failure);
  if (std::ranges::count(failed, 1) > 0) throw Stopped();
  const int count = (groups.wanted + groups.size - 1) / groups.size;
  std::vector<std::size_t> bounds = share_bounds(count, static_cast<std::size_t>(groups.size), ranks);
  for (std::size_t& bound : bounds) bound = std::min(bound, points.size()) * sizeof(Point);
  static_assert(std::is_trivially_copyable_v<Point>);
  ranks.gather(std::as_writable_bytes(points), bounds, Patience::unlimited);
}

}  // namespace hone
