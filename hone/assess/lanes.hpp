#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hone/base/statistics.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

// Statistics of eight series of numbers at once, with the same bits as for each series alone (statistics.hpp,
// refined_draws.hpp). Divisions that would wait for each other are then made eight at a time.
inline constexpr int lane_count = 8;
using Lanes = std::array<double, lane_count>;

// Eight series side by side: value i of series l is at [8 i + l].
class LaneBlock {
 public:
  explicit LaneBlock(int length) : values_(static_cast<std::size_t>(length) * lane_count) {}
  // The rows first … first + 7 of a matrix; zeros for those that it does not have.
  LaneBlock(MatrixView<const double> matrix, int first);

  int length() const { return static_cast<int>(values_.size()) / lane_count; }
  std::span<const double> values() const { return values_; }
  std::vector<double> series(int lane) const;
  // (x − centre)², and 1 where x < limit, else 0
  LaneBlock squares_about(const Lanes& centre) const;
  LaneBlock below(const Lanes& limit) const;
  // Series of as many chains of one length, chain after chain: their means, chain by chain.
  LaneBlock means_of_chains(int chains) const;
  LaneBlock minus(const LaneBlock& other) const;

 private:
  std::vector<double> values_;
};

// The moments of every series, as class Moments has them.
struct LaneMoments {
  std::uint64_t count;
  Lanes mean, squares;

  Moments of(int lane) const {
    const auto l = static_cast<std::size_t>(lane);
    return Moments({count, mean[l], squares[l]});
  }
};
// Of the values [begin, end) of every series.
LaneMoments moments_of(const LaneBlock& block, int begin, int end);
inline LaneMoments moments_of(const LaneBlock& block) { return moments_of(block, 0, block.length()); }

}  // namespace hone
