#pragma once

#include <algorithm>
#include <exception>
#include <span>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/ranks.hpp"

namespace hone {

// Data in groups of `size`, of which the first `wanted` data are needed. Groups are always cut from all data, so a
// datum's result does not depend on `wanted`.
struct Groups {
  int size, data, wanted;
  int count() const { return (wanted + size - 1) / size; }
};

// Ranks share groups: work(own) computes points[i] of the data i of this rank's groups, and then every rank has the
// results of all. If the work of a rank fails or is stopped, it fails on all of them.
template <class Point, class Work>
void share_groups(Ranks* ranks, const Groups& groups, std::span<Point> points, Work work) {
  const ItemRange own = share_of(groups.count(), ranks);
  if (!ranks) return work(own);
  std::exception_ptr failure;
  try {
    work(own);
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<char> failed(static_cast<std::size_t>(ranks->size()));
  failed[static_cast<std::size_t>(ranks->rank())] = failure != nullptr;
  gather_shares<char>(ranks, failed, ranks->size(), Patience::unlimited);
  if (failure) std::rethrow_exception(failure);
  if (std::ranges::count(failed, 1) > 0) throw Stopped();
  std::vector<std::size_t> bounds = share_bounds(groups.count(), static_cast<std::size_t>(groups.size), *ranks);
  for (std::size_t& bound : bounds) bound = std::min(bound, points.size()) * sizeof(Point);
  static_assert(std::is_trivially_copyable_v<Point>);
  ranks->gather(std::as_writable_bytes(points), bounds, Patience::unlimited);
}

}  // namespace hone
