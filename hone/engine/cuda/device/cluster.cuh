#pragma once

#include <cooperative_groups.h>

namespace hone::cuda {

// What kernels of a refinement, and those before and after it, run on: blocks of so many warps, some blocks per
// cluster.
inline constexpr int warps = 16, threads = 32 * warps;

// A number ≥ 0 of which nothing may be computed ahead, outside of a loop: registers are needed for weights.
__device__ __forceinline__ int here_only(int x) {
  asm volatile("" : "+r"(x));
  __builtin_assume(x >= 0);
  return x;
}

// A kernel may be launched before the one before it has ended (`Launch`). Some block of every such kernel waits for
// that, and the next one may come when all blocks have waited or ended: so when a kernel begins, all but the one before
// it have ended, and what they wrote is there (asked for past the cache of the multiprocessor, which may be older).
// Before `wait_for_previous` a kernel reads nothing that the one before it writes, and writes nothing that it touches.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // what follows needs clusters

// Addresses in the shared memory of the cluster's blocks.
__device__ __forceinline__ unsigned remote_address(const void* mine, int rank) {
  unsigned address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(static_cast<unsigned>(__cvta_generic_to_shared(mine))), "r"(rank));
  return address;
}

// The cluster's blocks meet: what a block did with its own shared memory, mailboxes among it, is done when others write
// there. It orders nothing else; a `sync` of the cluster does, and takes as long as a fence for the whole device.
__device__ __forceinline__ void arrive_at_meeting() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __threadfence_block();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void end_meeting() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

// A place where a block waits for numbers that the blocks of its cluster, itself among them, store into its shared
// memory, or that are copied there: each announces its bytes when it has arrived. Lighter than a `sync` of the cluster,
// which is a fence for all memory. A store for the next time must never be made before every block has waited for the
// last: else bytes of two times are counted together.
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

// Neighbouring bytes, a multiple of 16, from global memory to this block's shared memory, by one thread: the box, which
// must expect them, knows when they are there. Earlier use of the place must have ended (a barrier).
__device__ __forceinline__ void copy_bytes(void* shared, const void* global, int bytes, const Mailbox& box) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(bytes), "r"(box.address())
               : "memory");
}

// By one thread: then the block needs a barrier, and the cluster must meet, this thread among all
// (`arrive_at_meeting`).
template <int count>
__device__ __forceinline__ void set_up_boxes(const Mailbox* boxes) {
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int i = 0; i < count; ++i) boxes[i].set_up();
}

// Some mailboxes of a block, and how often each was emptied.
template <int count>
class Mailboxes {
 public:
  explicit __device__ Mailboxes(Mailbox* boxes) : boxes_(boxes) {}

  __device__ void set_up() const { set_up_boxes<count>(boxes_); }
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
// Two or four words at once, to addresses of another block's: what costs is the number of stores, not of bytes.
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

#endif

}  // namespace hone::cuda
