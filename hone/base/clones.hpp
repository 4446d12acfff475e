#pragma once

#include <cstdlib>  // defines __GLIBC__ on glibc

// HONE_CLONES before a function compiles it for several instruction levels and chooses one when the program starts. It
// is for loops over elements: products and sums are not fused (-ffp-contract=off), so every level gives the same bits.
// The thread sanitizer is not ready yet when that choice is made, so its builds have one level.
#if !defined(__CUDACC__) && defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define HONE_CLONES __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define HONE_CLONES
#endif

// HONE_INLINE is for functions that such a function calls: unless they are inlined, they stay at the lowest level. CUDA
// code may call them too, so both engines share the formula.
#if defined(__CUDACC__)
#define HONE_INLINE __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define HONE_INLINE [[gnu::always_inline]] inline
#else
#define HONE_INLINE inline
#endif
