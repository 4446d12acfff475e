#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace hone {

// The rows of a batch, rounded up to whole vectors of every instruction level.
inline constexpr int padded(int rows) { return (rows + 15) / 16 * 16; }

// Columns of `rows` numbers that start padded(rows) apart. Whoever writes a column may write its padding. The padding
// holds finite numbers, and no result depends on it.
template <class T>
class BatchView {
 public:
  BatchView() = default;
  BatchView(T* data, int rows, int cols) : data_(data), rows_(rows), cols_(cols) {}
  operator BatchView<const T>() const requires(!std::is_const_v<T>) { return {data_, rows_, cols_}; }

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  std::size_t stride() const { return static_cast<std::size_t>(padded(rows_)); }
  T* data() const { return data_; }
  T* column(int col) const { return data_ + stride() * static_cast<std::size_t>(col); }
  T& operator()(int row, int col) const { return column(col)[row]; }
  BatchView columns(int begin, int end) const { return {column(begin), rows_, end - begin}; }

 private:
  T* data_ = nullptr;
  int rows_ = 0;
  int cols_ = 0;
};

// Owns a batch. It starts as zeros, padding included.
template <class T>
class Batch {
 public:
  Batch() = default;
  Batch(int rows, int cols) { resize(rows, cols); }

  // Keeps its memory, and what it holds, if that is large enough.
  void resize(int rows, int cols) {
    const std::size_t size = static_cast<std::size_t>(padded(rows)) * static_cast<std::size_t>(cols);
    if (size > capacity_) {
      values_.reset(static_cast<T*>(::operator new[](size * sizeof(T), std::align_val_t{64})));
      std::uninitialized_value_construct_n(values_.get(), size);
      capacity_ = size;
    }
    rows_ = rows;
    cols_ = cols;
  }

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  BatchView<T> view() { return {values_.get(), rows_, cols_}; }
  BatchView<const T> view() const { return {values_.get(), rows_, cols_}; }
  operator BatchView<T>() { return view(); }
  operator BatchView<const T>() const { return view(); }
  T& operator()(int row, int col) { return view()(row, col); }
  const T& operator()(int row, int col) const { return view()(row, col); }

 private:
  struct Release {
    void operator()(T* values) const { ::operator delete[](values, std::align_val_t{64}); }
  };

  std::unique_ptr<T[], Release> values_;
  std::size_t capacity_ = 0;
  int rows_ = 0;
  int cols_ = 0;
};

}  // namespace hone
