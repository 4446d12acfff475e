#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hone/base/error.hpp"

namespace hone::cuda {

// Throws Error with CUDA's own words and what was being done.
inline void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // it is told here, and not again at the next launch
  std::string text = std::string("CUDA, ") + doing + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation)
    text += "; a smaller batch, smaller layers or fewer runs side by side need less";
  throw Error(text);
}

// Copies that are complete when they return. Without the wait a copy from the host may still be under way, and queues
// that do not block, as ours, would not wait for it.
template <class T>
void copy_to(T* to, std::span<const T> values, const char* doing) {
  if (values.empty()) return;
  check(cudaMemcpy(to, values.data(), values.size_bytes(), cudaMemcpyHostToDevice), doing);
  check(cudaStreamSynchronize(nullptr), doing);
}
template <class T>
void copy_to(T* to, const std::vector<T>& values, const char* doing) {
  copy_to(to, std::span<const T>(values), doing);
}
template <class T>
std::vector<std::remove_const_t<T>> copy_of(T* from, std::size_t count, const char* doing) {
  std::vector<std::remove_const_t<T>> values(count);
  if (count > 0) check(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), doing);
  return values;
}

// A pointer so many floats further on: from a run's array to another's.
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
    check(cudaMalloc(&data_, size * sizeof(T)), "allocating memory on the device");
    check(cudaMemset(data_, 0, size * sizeof(T)), "clearing memory");
    check(cudaStreamSynchronize(nullptr), "clearing memory");
  }
  explicit Memory(std::span<const T> values) : Memory(values.size()) { upload(values); }
  ~Memory() { cudaFree(data_); }
  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  void upload(std::span<const T> values, std::size_t offset = 0) {
    copy_to(data_ + offset, values, "copying to the device");
  }
  std::vector<T> download() const { return download(0, size_); }
  std::vector<T> download(std::size_t offset, std::size_t count) const {
    return copy_of(data_ + offset, count, "copying from the device");
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

inline int device_attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&value, which, device), "asking what the device has");
  return value;
}

// Whether the device knows clusters and launches ahead, and this program has code for such: compute capability 9.0.
bool has_clusters();

// A launch of blocks of so many threads, in clusters of so many blocks; `ahead`: of the end of the kernel before it,
// where the device can (`wait_for_previous`).
struct Launch {
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config = {};

  Launch(const dim3& grid, int cluster, int block, int bytes, cudaStream_t stream, bool ahead = true) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = cluster;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = dim3(block);
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = !has_clusters() ? 0 : ahead ? 2 : 1;
  }
  Launch(const Launch&) = delete;  // `config` points to `attributes`
  Launch& operator=(const Launch&) = delete;
};

// How many clusters of a kernel the device, or the part of it that we have, holds at a time.
template <class Kernel>
int resident_clusters(Kernel kernel, int cluster, int block, int bytes) {
  const Launch launch(cluster, cluster, block, bytes, nullptr, false);
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config) == cudaSuccess) return clusters;
  cudaGetLastError();
  return 0;
}

class Queue {
 public:
  Queue() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream"); }
  ~Queue() { cudaStreamDestroy(stream_); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "running on the device"); }

 private:
  cudaStream_t stream_ = nullptr;
};

// Places in a block's shared memory, one after the other.
class Places {
 public:
  explicit __host__ __device__ constexpr Places(int begin = 0) : size_(begin) {}
  template <class T>
  __host__ __device__ constexpr int take(int count) {  // its first byte
    const int at = (size_ + 15) / 16 * 16;
    size_ = at + count * static_cast<int>(sizeof(T));
    return at;
  }
  __host__ __device__ constexpr int bytes() const { return (size_ + 15) / 16 * 16; }

 private:
  int size_;
};

constexpr int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }
constexpr int ceil_div(int value, int unit) { return (value + unit - 1) / unit; }

}  // namespace hone::cuda
