#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hone {

/// Binary data, one bit per value. Each datum starts a new word, lowest bit first; bits beyond its end are 0.
class BitRows {
 public:
  BitRows() = default;
  /// No data yet, of `dimension` bits each.
  explicit BitRows(int dimension) : dimension_(dimension), words_((static_cast<std::size_t>(dimension) + 63) / 64) {}

  /// Bits per datum.
  int dimension() const { return dimension_; }
  /// Number of data.
  int size() const { return size_; }
  /// Bit i of a datum.
  bool operator()(int datum, int i) const { return row(datum)[static_cast<std::size_t>(i) / 64] >> (i % 64) & 1; }
  /// The words of a datum.
  std::span<const std::uint64_t> row(int datum) const {
    return std::span(bits_).subspan(static_cast<std::size_t>(datum) * words_, words_);
  }
  /// Bytes used.
  std::size_t memory() const { return bits_.size() * sizeof(std::uint64_t); }

  /// Appends data.
  void append(std::span<const std::uint8_t> values) {  // (dimension), each 0 or 1
    const std::size_t begin = bits_.size();
    bits_.resize(begin + words_);
    for (std::size_t i = 0; i < values.size(); ++i) bits_[begin + i / 64] |= std::uint64_t{values[i]} << (i % 64);
    ++size_;
  }

  /// Appends data.
  void append(const BitRows& from, int begin, int end) {  // data [begin, end) of another set with the same dimension
    const auto first = from.bits_.begin();
    bits_.insert(bits_.end(), first + begin * static_cast<std::ptrdiff_t>(words_),
                 first + end * static_cast<std::ptrdiff_t>(words_));
    size_ += end - begin;
  }

 private:
  int dimension_ = 0;
  std::size_t words_ = 0;  // per datum
  int size_ = 0;
  std::vector<std::uint64_t> bits_;
};

}  // namespace hone
