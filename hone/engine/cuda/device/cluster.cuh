#pragma once

namespace hone::cuda {

// The refinement's kernels, and those before and after it, run on blocks of this many warps, several blocks per
// cluster.
inline constexpr int warps = 16, threads = 32 * warps;

// A number ≥ 0 that the compiler cannot see through. So it computes nothing from it before a loop, where the registers
// are needed for weights.
__device__ __forceinline__ int here_only(int x) {
  asm volatile("" : "+r"(x));
  __builtin_assume(x >= 0);
  return x;
}

// A kernel may be launched before the previous one has ended (`Launch`). In every such kernel some block waits for that
// end, and the next kernel may start only when all blocks have waited or ended. So when a kernel starts, every kernel
// but the previous one has ended, and what they wrote can be read (past the multiprocessor's own cache, which may be
// out of date). Before `wait_for_previous` a kernel reads nothing that the previous one writes, and writes nothing that
// it touches.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// What follows needs clusters: kernels call it where __CUDA_ARCH__ is at least 900.

__device__ __forceinline__ int block_rank() {  // in its cluster
#if __CUDA_ARCH__ >= 900
  return static_cast<int>(__clusterRelativeBlockRank());
#else
  return 0;
#endif
}

// Addresses in the shared memory of the cluster's blocks.
__device__ __forceinline__ unsigned remote_address(const void* mine, int rank) {
  unsigned address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(static_cast<unsigned>(__cvta_generic_to_shared(mine))), "r"(rank));
  return address;
}

// The cluster's blocks meet: each has finished with its own shared memory and mailboxes before others write there. This
// orders nothing else. A `sync` of the cluster would, and takes as long as a fence for the whole device.
__device__ __forceinline__ void arrive_at_meeting() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __threadfence_block();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void end_meeting() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

// Where a block waits for numbers that the blocks of its cluster (itself included) store into its shared memory, or
// that are copied there; the box counts the bytes that arrive. Lighter than a `sync` of the cluster, which is a fence
// for all memory. Nobody may store for the next round before every block has waited for this one: the box would count
// bytes of two rounds together.
class Mailbox {
 public:
  __device__ void set_up() const { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address()) : "memory"); }
  __device__ void expect(int bytes) const {  // one thread, once each time
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
  }
  // What was stored is in this block's own shared memory: acquiring for the whole cluster would empty the cache of
  // global and local memory, and cost more than the wait.
  __device__ void wait(int phase) const {
    asm volatile(
        "{\n .reg .pred done;\n again:\n"
        " mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @!done bra again;\n}" ::"r"(address()),
        "r"(phase)
        : "memory");
  }
  __device__ unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(this)); }

 private:
  unsigned long long words_;
};

// One thread copies neighbouring bytes (a multiple of 16) from global memory to this block's shared memory. The box,
// which must expect them, knows when they have arrived. Earlier uses of the destination must have ended (a barrier).
__device__ __forceinline__ void copy_bytes(void* shared, const void* global, int bytes, const Mailbox& box) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(bytes), "r"(box.address())
               : "memory");
}

// Some mailboxes of a block, and how often each was emptied.
template <int count>
class Mailboxes {
 public:
  explicit __device__ Mailboxes(Mailbox* boxes) : boxes_(boxes) {}

  // By one thread. Afterwards the block needs a barrier and the cluster must meet, this thread included
  // (`arrive_at_meeting`).
  __device__ void set_up() const {
    if (threadIdx.x != 0) return;
    for (int i = 0; i < count; ++i) boxes_[i].set_up();
  }
  __device__ const Mailbox& operator[](int box) const { return boxes_[box]; }
  __device__ void receive(int box, int bytes) {  // all threads: what was sent to all has come
    if (threadIdx.x == 0) boxes_[box].expect(bytes);
    boxes_[box].wait(phases_ >> box & 1);
    phases_ ^= 1u << box;
  }

 private:
  Mailbox* boxes_;
  unsigned phases_ = 0;  // one bit per box
};

__device__ __forceinline__ void send(const float* place, const Mailbox& box, int rank, float value) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(remote_address(place, rank)),
      "r"(__float_as_uint(value)), "r"(remote_address(&box, rank))
      : "memory");
}
__device__ __forceinline__ void send(double* place, const Mailbox& box, int rank, double value) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(remote_address(place, rank)),
      "l"(__double_as_longlong(value)), "r"(remote_address(&box, rank))
      : "memory");
}
// Two or four words at once, to another block's addresses: the number of stores costs time, not the number of bytes.
__device__ __forceinline__ void send(unsigned place, unsigned box, uint2 words) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(place),
               "r"(words.x), "r"(words.y), "r"(box)
               : "memory");
}
__device__ __forceinline__ void send(unsigned place, unsigned box, float4 numbers) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(place),
      "f"(numbers.x), "f"(numbers.y), "f"(numbers.z), "f"(numbers.w), "r"(box)
      : "memory");
}

}  // namespace hone::cuda
