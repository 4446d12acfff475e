#pragma once

#include <cstddef>

namespace hone::cuda {

constexpr int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }
constexpr int ceil_div(int value, int unit) { return (value + unit - 1) / unit; }

// Places in a piece of memory, one after the other, each at a multiple of `unit` bytes.
template <class Size, int unit>
class PlacesOf {
 public:
  explicit __host__ __device__ constexpr PlacesOf(Size begin = 0) : size_(begin) {}
  template <class T>
  __host__ __device__ constexpr Size take(Size count) {  // its first byte
    const Size at = bytes();
    size_ = at + count * static_cast<Size>(sizeof(T));
    return at;
  }
  __host__ __device__ constexpr Size bytes() const { return (size_ + unit - 1) / unit * unit; }

 protected:
  Size size_;
};

using Places = PlacesOf<int, 16>;  // in a block's shared memory

// Hands out parts of a piece of device memory; without one it only counts.
class Arena {
 public:
  explicit Arena(char* base = nullptr) : base_(base) {}
  template <class T>
  T* take(std::size_t count) {
    return reinterpret_cast<T*>(base_ + places_.take<T>(count));
  }
  std::size_t used() const { return places_.bytes(); }

 private:
  char* base_;
  PlacesOf<std::size_t, 256> places_;
};

}  // namespace hone::cuda
