#include "hone/assess/lanes.hpp"

#include <algorithm>
#include <stdexcept>

#include "hone/base/clones.hpp"

namespace hone {
namespace {

constexpr auto lanes = static_cast<std::size_t>(lane_count);

HONE_CLONES void add_moments(const double* x, std::size_t count, double* mean, double* squares) {
  double m[lanes] = {}, s[lanes] = {};
  for (std::size_t i = 0; i < count; ++i, x += lanes) {
    const auto seen = static_cast<double>(i + 1);
    for (std::size_t l = 0; l < lanes; ++l) {
      const double shift = x[l] - m[l];
      m[l] += shift / seen;
      s[l] += shift * (x[l] - m[l]);
    }
  }
  std::copy_n(m, lanes, mean);
  std::copy_n(s, lanes, squares);
}

HONE_CLONES void chain_means(const double* x, std::size_t chains, std::size_t each, double* means) {
  for (std::size_t c = 0; c < chains; ++c, means += lanes) {
    double sum[lanes] = {};
    for (std::size_t s = 0; s < each; ++s, x += lanes)
      for (std::size_t l = 0; l < lanes; ++l) sum[l] += x[l];
    for (std::size_t l = 0; l < lanes; ++l) means[l] = sum[l] / static_cast<double>(each);
  }
}

HONE_CLONES void square_about(const double* x, const double* centre, std::size_t count, double* to) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t l = 0; l < lanes; ++l) {
      const double off = x[lanes * i + l] - centre[l];
      to[lanes * i + l] = off * off;
    }
}

HONE_CLONES void mark_below(const double* x, const double* limit, std::size_t count, double* to) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t l = 0; l < lanes; ++l) to[lanes * i + l] = x[lanes * i + l] < limit[l] ? 1 : 0;
}

}  // namespace

LaneBlock::LaneBlock(MatrixView<const double> matrix, int first) : LaneBlock(matrix.cols()) {
  const auto there = static_cast<std::size_t>(std::min(lane_count, matrix.rows() - first));
  double* to = values_.data();
  for (int i = 0; i < matrix.cols(); ++i, to += lanes) std::copy_n(&matrix(first, i), there, to);
}

std::vector<double> LaneBlock::series(int lane) const {
  std::vector<double> result(static_cast<std::size_t>(length()));
  const double* from = values_.data() + lane;
  for (double& x : result) {
    x = *from;
    from += lanes;
  }
  return result;
}

LaneBlock LaneBlock::squares_about(const Lanes& centre) const {
  LaneBlock result(length());
  square_about(values_.data(), centre.data(), values_.size() / lanes, result.values_.data());
  return result;
}

LaneBlock LaneBlock::below(const Lanes& limit) const {
  LaneBlock result(length());
  mark_below(values_.data(), limit.data(), values_.size() / lanes, result.values_.data());
  return result;
}

LaneBlock LaneBlock::means_of_chains(int chains) const {
  if (chains < 2 || length() % chains != 0 || values_.empty())
    throw std::logic_error("an error between chains needs at least two chains of one length");
  LaneBlock result(chains);
  chain_means(values_.data(), static_cast<std::size_t>(chains), static_cast<std::size_t>(length() / chains),
              result.values_.data());
  return result;
}

LaneBlock LaneBlock::minus(const LaneBlock& other) const {
  LaneBlock result(length());
  for (std::size_t i = 0; i < values_.size(); ++i) result.values_[i] = values_[i] - other.values_[i];
  return result;
}

LaneMoments moments_of(const LaneBlock& block, int begin, int end) {
  LaneMoments result{static_cast<std::uint64_t>(end - begin), {}, {}};
  add_moments(block.values().data() + lanes * static_cast<std::size_t>(begin), result.count, result.mean.data(),
              result.squares.data());
  return result;
}

}  // namespace hone
