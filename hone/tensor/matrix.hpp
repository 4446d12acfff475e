#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace hone {

/// A view of a matrix that somebody else owns, column after column. A batch of points is (D, n), a chain per column.
template <class T>
class MatrixView {
 public:
  /// A view of nothing, (0, 0).
  MatrixView() = default;
  /// `data` holds rows · cols numbers.
  MatrixView(T* data, int rows, int cols) : data_(data), rows_(rows), cols_(cols) {}
  /// The same view, read only.
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) { return {data_, rows_, cols_}; }

  /// Length of a column.
  int rows() const { return rows_; }
  /// Number of columns.
  int cols() const { return cols_; }
  /// The first number.
  T* data() const { return data_; }
  /// One element.
  T& operator()(int row, int col) const { return data_[offset(col) + static_cast<std::size_t>(row)]; }
  /// One column.
  std::span<T> column(int col) const { return {data_ + offset(col), static_cast<std::size_t>(rows_)}; }
  /// All numbers, column after column.
  std::span<T> flat() const { return {data_, offset(cols_)}; }
  /// The columns [begin, end).
  MatrixView columns(int begin, int end) const { return {data_ + offset(begin), rows_, end - begin}; }

 private:
  std::size_t offset(int col) const { return static_cast<std::size_t>(rows_) * static_cast<std::size_t>(col); }

  T* data_ = nullptr;
  int rows_ = 0;
  int cols_ = 0;
};

/// Memory that begins where a vector register and a cache line do. JAX, for one, reads such an array without a copy.
template <class T>
struct AlignedAllocator {
  /// What is allocated.
  using value_type = T;
  /// Multiple of bytes at which memory begins.
  static constexpr std::align_val_t alignment{64};

  /// Allocators have no state.
  AlignedAllocator() = default;
  /// Converts from an allocator of another type.
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}
  /// Memory for n objects.
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), alignment)); }
  /// Gives it back.
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, alignment); }
  /// All allocators are equal.
  bool operator==(const AlignedAllocator&) const { return true; }
};

/// A matrix that owns its numbers, stored column after column.
template <class T>
class Matrix {
 public:
  /// An empty matrix, (0, 0).
  Matrix() = default;
  /// A matrix of zeros.
  Matrix(int rows, int cols)
      : values_(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols)), rows_(rows), cols_(cols) {}

  /// Length of a column.
  int rows() const { return rows_; }
  /// Number of columns.
  int cols() const { return cols_; }
  /// One element.
  T& operator()(int row, int col) { return view()(row, col); }
  /// One element.
  const T& operator()(int row, int col) const { return view()(row, col); }
  /// The whole matrix as a view; matrices also convert to views.
  MatrixView<T> view() { return {values_.data(), rows_, cols_}; }
  /// The same, read only.
  MatrixView<const T> view() const { return {values_.data(), rows_, cols_}; }
  /// view()
  operator MatrixView<T>() { return view(); }
  /// view()
  operator MatrixView<const T>() const { return view(); }
  /// One column.
  std::span<T> column(int col) { return view().column(col); }
  /// One column.
  std::span<const T> column(int col) const { return view().column(col); }

 private:
  std::vector<T, AlignedAllocator<T>> values_;
  int rows_ = 0;
  int cols_ = 0;
};

}  // namespace hone
