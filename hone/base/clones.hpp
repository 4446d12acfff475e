#pragma once

#include <cstdlib>  // defines __GLIBC__ where it is

// HONE_CLONES before a function compiles it for several instruction levels, of which one is chosen when the program
// starts. For loops over elements: products and sums are not fused (-ffp-contract=off), so the bits are the same at
// every level.
#if !defined(__CUDACC__) && defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define HONE_CLONES __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define HONE_CLONES
#endif

// What such a function calls must become part of it, or it stays at the lowest level. CUDA code may call it too: the
// same formula on both engines.
#if defined(__CUDACC__)
#define HONE_INLINE __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define HONE_INLINE [[gnu::always_inline]] inline
#else
#define HONE_INLINE inline
#endif
