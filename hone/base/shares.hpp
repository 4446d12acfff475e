#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace hone {

// Cuts items into one share per thread by the recent speed of each thread, 1 if as fast as the others: on a machine
// with other work, or whose cores differ, a slow thread gets fewer items.
class Shares {
 public:
  explicit Shares(int threads) : speed_(static_cast<std::size_t>(threads), 1.0), bound_(speed_.size() + 1) {}

  // Share i is [begin(i), begin(i + 1)).
  int begin(int thread) const { return bound_[static_cast<std::size_t>(thread)]; }

  // As many items as threads: one each. With fewer, some threads have none.
  void cut(int items) {
    const auto threads = static_cast<int>(speed_.size());
    if (items <= threads) {
      for (int i = 0; i <= threads; ++i)
        bound_[static_cast<std::size_t>(i)] = static_cast<int>(std::int64_t{items} * i / threads);
      return;
    }
    const double total = std::accumulate(speed_.begin(), speed_.end(), 0.0);
    count_.assign(speed_.size(), 0);
    int left = items;
    for (std::size_t i = 0; i < count_.size(); ++i) left -= count_[i] = static_cast<int>(items * speed_[i] / total);
    for (; left > 0; --left) {  // to the thread that would finish first
      std::size_t best = 0;
      for (std::size_t i = 1; i < count_.size(); ++i)
        if ((count_[i] + 1) * speed_[best] < (count_[best] + 1) * speed_[i]) best = i;
      ++count_[best];
    }
    for (std::size_t i = 0; i < count_.size(); ++i) bound_[i + 1] = bound_[i] + count_[i];
  }

  // Learns from the seconds that the shares took; seconds(i) is that of thread i.
  template <class Seconds>
  void learn(Seconds seconds) {
    constexpr double shortest = 20e-6, weight = 0.2, slowest = 0.2, fastest = 5;
    const auto items = [&](std::size_t i) { return bound_[i + 1] - bound_[i]; };
    if (bound_.back() <= static_cast<int>(speed_.size())) return;
    double sum = 0;
    int counted = 0;
    for (std::size_t i = 0; i < speed_.size(); ++i) {
      if (items(i) == 0) continue;
      if (seconds(i) < shortest) return;
      sum += items(i) / seconds(i);
      ++counted;
    }
    for (std::size_t i = 0; i < speed_.size(); ++i) {
      const double seen = items(i) == 0 ? 1 : items(i) / seconds(i) * counted / sum;  // one without items tries again
      speed_[i] += weight * (std::clamp(seen, slowest, fastest) - speed_[i]);
    }
  }

 private:
  std::vector<double> speed_;
  std::vector<int> bound_, count_;
};

}  // namespace hone
