#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace hone {

// Columns of contiguous numbers that somebody else owns. A batch of points is (D, n): one chain a column.
template <class T>
class MatrixView {
 public:
  MatrixView() = default;
  MatrixView(T* data, int rows, int cols) : data_(data), rows_(rows), cols_(cols) {}
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) { return {data_, rows_, cols_}; }

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  T* data() const { return data_; }
  T& operator()(int row, int col) const { return data_[offset(col) + static_cast<std::size_t>(row)]; }
  std::span<T> column(int col) const { return {data_ + offset(col), static_cast<std::size_t>(rows_)}; }
  std::span<T> flat() const { return {data_, offset(cols_)}; }
  MatrixView columns(int begin, int end) const { return {data_ + offset(begin), rows_, end - begin}; }

 private:
  std::size_t offset(int col) const { return static_cast<std::size_t>(rows_) * static_cast<std::size_t>(col); }

  T* data_ = nullptr;
  int rows_ = 0;
  int cols_ = 0;
};

template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(int rows, int cols)
      : values_(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols)), rows_(rows), cols_(cols) {}

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  T& operator()(int row, int col) { return view()(row, col); }
  const T& operator()(int row, int col) const { return view()(row, col); }
  MatrixView<T> view() { return {values_.data(), rows_, cols_}; }
  MatrixView<const T> view() const { return {values_.data(), rows_, cols_}; }
  operator MatrixView<T>() { return view(); }
  operator MatrixView<const T>() const { return view(); }
  std::span<T> column(int col) { return view().column(col); }
  std::span<const T> column(int col) const { return view().column(col); }

 private:
  std::vector<T> values_;
  int rows_ = 0;
  int cols_ = 0;
};

inline void copy(std::span<const double> from, std::span<double> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace hone
