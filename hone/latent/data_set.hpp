#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "hone/latent/bit_rows.hpp"
#include "hone/tensor/matrix.hpp"

namespace hone {

struct ImageShape {
  int rows = 1;
  int cols = 1;
  int pixels() const { return rows * cols; }
};

// Data held in memory as small as their values allow, and expanded to numbers a minibatch at a time. A datum is an
// image, row after row; data that are not images are images of one row.
class DataSet {
 public:
  DataSet() = default;

  // Throw InputError where the values do not make up whole data. `values` are (size, pixels), last index fastest.
  DataSet(BitRows bits, ImageShape shape);
  DataSet(std::vector<std::uint8_t> values, ImageShape shape, double scale);  // a byte stands for byte · scale
  DataSet(std::vector<float> values, ImageShape shape);
  DataSet(std::vector<double> values, ImageShape shape);

  int size() const { return size_; }
  int dimension() const { return size_ == 0 ? 0 : shape_.pixels(); }
  ImageShape shape() const { return shape_; }
  bool binary() const { return bits() != nullptr; }  // kept as bits, so every value is 0 or 1
  std::size_t memory() const;                        // bytes

  // Writes the data named by `indices` as columns: out is (dimension, indices.size()). An index may come twice.
  // T is float or double. Throws InputError where a shape or an index does not fit.
  template <class T>
  void expand(std::span<const int> indices, MatrixView<T> out) const;

  DataSet slice(int begin, int end) const;  // a copy of the data [begin, end)

  // What the data are kept as; null where they are kept otherwise.
  const BitRows* bits() const { return std::get_if<BitRows>(&values_); }
  const std::vector<std::uint8_t>* bytes() const { return std::get_if<std::vector<std::uint8_t>>(&values_); }

 private:
  friend DataSet packed_if_binary(DataSet data);

  std::variant<BitRows, std::vector<std::uint8_t>, std::vector<float>, std::vector<double>> values_;
  ImageShape shape_;
  double scale_ = 1;
  int size_ = 0;
};

// The same data as bits where every value is exactly 0 or 1; otherwise as it was.
DataSet packed_if_binary(DataSet data);

}  // namespace hone
