#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "hone/tensor/matrix.hpp"

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

/// The shape of an image.
struct ImageShape {
  int rows = 1;      ///< height
  int cols = 1;      ///< width
  int channels = 1;  ///< 3 for colour images; the values of a pixel follow each other
  /// values per datum: rows · cols · channels
  int pixels() const { return rows * cols * channels; }
  /// Whether it can be drawn: more than one row and column, grey or red, green and blue.
  bool drawable() const { return rows > 1 && cols > 1 && (channels == 1 || channels == 3); }
};

/// Data whose values are mostly zero, in compressed rows: datum n has value[i] at position column[i] for i in
/// [begin[n], begin[n + 1]), and zeros elsewhere. The caller owns the numbers, which must outlive their use.
struct SparseRows {
  std::span<const std::int64_t> begin;   ///< (size + 1)
  std::span<const std::int32_t> column;  ///< from 0, each at most once per datum
  std::span<const double> value;         ///< as many as columns
};

/// Data in the most compact form that their values allow, expanded to numbers one minibatch at a time. A datum is an
/// image, row by row; data that are not images count as images of one row.
class DataSet {
 public:
  DataSet() = default;

  /// `values` are (size, pixels), last index fastest. Throw InputError if the last datum is incomplete.
  DataSet(BitRows bits, ImageShape shape);
  DataSet(std::vector<std::uint8_t> values, ImageShape shape, double scale);  ///< a byte stands for byte · scale
  /// Data from values (size, pixels), last index fastest. Throws InputError if they are not whole data.
  DataSet(std::vector<float> values, ImageShape shape);
  /// Data from values (size, pixels), last index fastest. Throws InputError if they are not whole data.
  DataSet(std::vector<double> values, ImageShape shape);
  /// The same without a copy: the caller owns the numbers, which must outlive the data set and its copies.
  DataSet(std::span<const std::uint8_t> values, ImageShape shape);
  DataSet(std::span<const float> values, ImageShape shape);   ///< without a copy
  DataSet(std::span<const double> values, ImageShape shape);  ///< without a copy
  DataSet(const SparseRows& rows, ImageShape shape);          ///< without a copy

  /// Number of data.
  int size() const { return size_; }
  /// Values per datum.
  int dimension() const { return size_ == 0 ? 0 : shape_.pixels(); }
  /// The shape of a datum.
  ImageShape shape() const { return shape_; }
  bool binary() const { return bits() != nullptr; }  ///< stored as bits: every value is 0 or 1
  std::size_t memory() const;                        ///< bytes

  /// Writes the data at `indices`, which may repeat, as columns: out is (dimension, indices.size()). T is float or
  /// double. Throws InputError if a shape or an index does not fit.
  template <class T>
  void expand(std::span<const int> indices, MatrixView<T> out) const;

  DataSet slice(int begin, int end) const;  ///< a copy of the data [begin, end)

  /// The stored form; null if the data are stored in another one.
  const BitRows* bits() const { return std::get_if<BitRows>(&values_); }
  /// The bytes that hold the data; empty if they are kept otherwise.
  std::span<const std::uint8_t> bytes() const;
  /// What a byte is multiplied by.
  double scale() const { return scale_; }

 private:
  friend DataSet packed_if_binary(DataSet data);

  std::variant<BitRows, std::vector<std::uint8_t>, std::vector<float>, std::vector<double>,
               std::span<const std::uint8_t>, std::span<const float>, std::span<const double>, SparseRows>
      values_;
  ImageShape shape_;
  double scale_ = 1;
  int size_ = 0;
};

/// Stores the data as bits if every value is exactly 0 or 1; otherwise returns them unchanged.
DataSet packed_if_binary(DataSet data);

/// Data that a model generated, with the latent z of each datum: an exact draw from its posterior.
struct SimulatedData {
  Matrix<double> z;  ///< (D, data)
  DataSet data;      ///< the generated data
};

}  // namespace hone
