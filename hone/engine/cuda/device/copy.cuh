#pragma once

namespace hone::cuda {

// Copies from global to shared memory that a thread does not wait for.

// A number from global to shared memory, which is there after `wait_for_copies` (for other threads: and a barrier).
template <class T>
__device__ __forceinline__ void copy_async(T* shared, const T* global) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(global), "n"(sizeof(T)) : "memory");
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// 16 bytes to an address in shared memory; those outside are not read and become zero
__device__ __forceinline__ void copy_async(unsigned to, const void* from, bool inside) {
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_async(void* to, const void* from, bool inside) {
  copy_async(static_cast<unsigned>(__cvta_generic_to_shared(to)), from, inside);
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace hone::cuda
