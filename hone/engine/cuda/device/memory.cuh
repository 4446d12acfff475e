#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "hone/base/error.hpp"

namespace hone::cuda {

// Throws Error with CUDA's own message and the action that failed.
inline void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears it, so that the next launch does not report it again
  std::string text = std::string("CUDA, ") + doing + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation)
    text += "; a smaller batch, smaller layers or fewer runs side by side need less";
  throw Error(text);
}

// Copies that are complete when they return. Without the wait a copy from the host might still be under way, and
// non-blocking streams such as ours would not wait for it.
template <class T>
void copy_to(T* to, std::type_identity_t<std::span<const T>> values, const char* doing) {
  if (values.empty()) return;
  check(cudaMemcpy(to, values.data(), values.size_bytes(), cudaMemcpyHostToDevice), doing);
  check(cudaStreamSynchronize(nullptr), doing);
}
template <class T>
std::vector<std::remove_const_t<T>> copy_of(T* from, std::size_t count, const char* doing) {
  std::vector<std::remove_const_t<T>> values(count);
  if (count > 0) check(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), doing);
  return values;
}

// The pointer `floats` floats further on: from one run's array to another's.
template <class T>
__host__ __device__ T* at(T* pointer, std::size_t floats) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(pointer)) + 4 * floats);
}

// Memory on the device, zero at the start.
template <class T>
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t size) : size_(size) {
    if (size == 0) return;
    T* taken;
    check(cudaMalloc(&taken, size * sizeof(T)), "allocating memory on the device");
    data_.reset(taken);
    check(cudaMemset(taken, 0, size * sizeof(T)), "clearing memory");
    check(cudaStreamSynchronize(nullptr), "clearing memory");
  }
  explicit Memory(std::span<const T> values) : Memory(values.size()) {
    copy_to(data(), values, "copying to the device");
  }

  T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::vector<T> download() const { return copy_of(data(), size_, "copying from the device"); }

 private:
  std::unique_ptr<T, decltype(&cudaFree)> data_{nullptr, cudaFree};
  std::size_t size_ = 0;
};

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
