#pragma once

#include "hone/engine/cuda/device/launch.cuh"
#include "hone/engine/cuda/device/mma.cuh"

namespace hone::cuda {

// Floats from one product's numbers to the next one's: operands, C (and all that has its shape), biases, data.
struct Distances {
  std::size_t a = 0, b = 0, c = 0, bias = 0, data = 0;
};

// C (m, n) = A (m, k) B (n, k)ᵀ, neighbours of both along k. Rows in memory are multiples of 16 bytes, padded with 0.
// An epilogue takes every element of C from where it is computed.
template <class E>
struct Product {
  const E* a;
  const E* b;
  int lda, ldb;
  int m, n, k;

  __device__ void shift(const Distances& distances) {
    a = at(a, distances.a);
    b = at(b, distances.b);
  }
};

// Products of one shape side by side: networks of a run, and runs.
struct Beside {
  int nets = 1, runs = 1;
  Distances net, run;

  int count() const { return nets * runs; }
  __device__ Distances of(int index) const {
    const std::size_t n = index % nets, r = index / nets;
    return {n * net.a + r * run.a, n * net.b + r * run.b, n * net.c + r * run.c, n * net.bias + r * run.bias,
            n * net.data + r * run.data};
  }
};

}  // namespace hone::cuda
