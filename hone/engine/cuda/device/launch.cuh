#pragma once

#include "hone/engine/cuda/device/memory.cuh"

namespace hone::cuda {

inline int device_attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&value, which, device), "asking what the device has");
  return value;
}

// Whether the device knows clusters and launches ahead, and this program has code for such: compute capability 9.0.
bool has_clusters();

// A launch of blocks of `block` threads in clusters of `cluster` blocks. `ahead`: it may begin before the previous
// kernel ends, where the device can do that (`wait_for_previous`).
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

// Launches that are recorded once and then replayed. Empty until something is recorded.
class Graph {
 public:
  Graph() = default;
  template <class F>
  Graph(cudaStream_t stream, F record) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording an iteration");
    record();
    check(cudaStreamEndCapture(stream, &graph), "recording an iteration");
    const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "preparing an iteration");
  }
  ~Graph() {
    if (executable_) cudaGraphExecDestroy(executable_);
  }
  Graph(Graph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(executable_, other.executable_);
    return *this;
  }
  explicit operator bool() const { return executable_ != nullptr; }
  void replay(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "starting an iteration"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

// Bytes of shared memory that a block of a cluster may have; 0 where `has_clusters` says no.
int cluster_shared_memory();

// A plain launch: blocks, threads per block, bytes of dynamic shared memory.
struct Grid {
  dim3 blocks, threads;
  int bytes = 0;
};
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, cudaStream_t stream, const char* doing,
            const Arguments&... arguments) {
  kernel<<<grid.blocks, grid.threads, grid.bytes, stream>>>(arguments...);
  check(cudaGetLastError(), doing);
}
// One thread per element.
inline Grid threads_for(int count, int runs = 1) { return {dim3(ceil_div(count, 256), runs), 256}; }

template <auto kernel, int bytes>
void allow_shared_memory() {  // asks once per kernel
  if constexpr (bytes > 48 * 1024) {
    static const cudaError_t raised = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    check(raised, "asking for shared memory");
  }
}

}  // namespace hone::cuda
