#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace hone {

// The rows of a batch, rounded up to whole vectors of every instruction level.
inline constexpr int padded(int rows) { return (rows + 15) / 16 * 16; }

// A number of rows that an int holds, padded. Throws std::length_error if there are too many.
inline int row_count(std::size_t rows) {
  if (rows > static_cast<std::size_t>(std::numeric_limits<int>::max() - 15))
    throw std::length_error("a layer has more weights than an array may hold");
  return static_cast<int>(rows);
}

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

// Owns a batch. It starts as zeros, padding included. Large batches come as pages that nobody has touched, so each page
// lies in the memory of the thread that writes to it first.
template <class T>
class Batch {
  static_assert(std::is_trivial_v<T>);  // zero bits are a zero

 public:
  Batch() = default;
  Batch(int rows, int cols) { resize(rows, cols); }
  Batch(Batch&& other) noexcept { swap(other); }
  Batch& operator=(Batch&& other) noexcept {
    Batch(std::move(other)).swap(*this);
    return *this;
  }

  // Keeps its memory, and what it holds, if that is large enough.
  void resize(int rows, int cols) {
    const std::size_t size = static_cast<std::size_t>(padded(rows)) * static_cast<std::size_t>(cols);
    if (size > capacity_) {
      constexpr std::size_t alignment = 64;
      memory_.reset(std::calloc(size * sizeof(T) + alignment, 1));
      if (!memory_) throw std::bad_alloc();
      void* start = memory_.get();
      std::size_t space = size * sizeof(T) + alignment;
      values_ = static_cast<T*>(std::align(alignment, size * sizeof(T), start, space));
      capacity_ = size;
    }
    rows_ = rows;
    cols_ = cols;
  }

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  BatchView<T> view() { return {values_, rows_, cols_}; }
  BatchView<const T> view() const { return {values_, rows_, cols_}; }
  operator BatchView<T>() { return view(); }
  operator BatchView<const T>() const { return view(); }
  T& operator()(int row, int col) { return view()(row, col); }
  const T& operator()(int row, int col) const { return view()(row, col); }

 private:
  void swap(Batch& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(values_, other.values_);
    std::swap(capacity_, other.capacity_);
    std::swap(rows_, other.rows_);
    std::swap(cols_, other.cols_);
  }

  struct Release {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::unique_ptr<void, Release> memory_;
  T* values_ = nullptr;  // at a multiple of 64 bytes
  std::size_t capacity_ = 0;
  int rows_ = 0;
  int cols_ = 0;
};

}  // namespace hone
