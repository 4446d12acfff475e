#pragma once

#include "hone/engine/cuda/device/memory.cuh"

namespace hone::cuda {

inline int device_attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&value, which, device), "asking what the device has");
  return value;
}

template <class = void>
__global__ void any_kernel() {}  // compiled for the same architectures as all others

// Whether the device knows clusters and launches ahead, and this program has code for such: compute capability 9.0.
inline bool has_clusters() {
  cudaFuncAttributes code;
  check(cudaFuncGetAttributes(&code, any_kernel<>), "asking for the code of a kernel");
  return device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9 && code.ptxVersion >= 90;
}

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
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording an iteration");
    record();
    check(cudaStreamEndCapture(stream, &graph), "recording an iteration");
    const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "preparing an iteration");
    executable_.reset(executable);
  }
  explicit operator bool() const { return executable_ != nullptr; }
  void replay(cudaStream_t stream) const { check(cudaGraphLaunch(executable_.get(), stream), "starting an iteration"); }

 private:
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, decltype(&cudaGraphExecDestroy)> executable_{
      nullptr, cudaGraphExecDestroy};
};

// A plain launch: blocks, threads per block, bytes of dynamic shared memory.
struct Grid {
  dim3 blocks, threads;
  int bytes = 0;
};
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, cudaStream_t stream, const char* doing,
            const Arguments&... arguments) {
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) return;  // a rank without rows
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

// Of a block of one dimension
__device__ __forceinline__ int this_thread() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int this_warp() { return this_thread() / 32; }
__device__ __forceinline__ int this_lane() { return this_thread() % 32; }

// One warp per row (a chain, a datum) of each run, several warps per block.
inline constexpr int rows_per_block = 4;
struct WarpRow {
  int run_index, index, lane;
};
__device__ __forceinline__ WarpRow this_row() {
  return {static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x) * rows_per_block + this_warp(), this_lane()};
}
inline Grid warps_for(int rows, int runs = 1) {
  return {dim3(ceil_div(rows, rows_per_block), runs), 32 * rows_per_block};
}

__device__ __forceinline__ double warp_sum(double x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, offset);
  return x;
}

// Several sums at a time, in little code.
template <int count>
__device__ __forceinline__ void warp_sums(double (&x)[count]) {
#pragma unroll 1
  for (int offset = 16; offset > 0; offset /= 2)
    for (double& s : x) s += __shfl_xor_sync(0xFFFFFFFFu, s, offset);
}

// Two sums at a time, for the first lanes alone where the others have 0.
template <int lanes>
__device__ __forceinline__ void sum_lanes(double& a, double& b) {
  for (int offset = lanes <= 16 ? 8 : 16; offset > 0; offset /= 2) {
    const double c = __shfl_xor_sync(0xFFFFFFFFu, a, offset), d = __shfl_xor_sync(0xFFFFFFFFu, b, offset);
    a += c;
    b += d;
  }
}

}  // namespace hone::cuda
