#pragma once

#include <algorithm>

#include "hone/engine/cuda/device/copy.cuh"
#include "hone/engine/cuda/device/launch.cuh"
#include "hone/engine/cuda/device/mma.cuh"

namespace hone::cuda {

// How far one product's numbers are from another's, in floats: operands, C and what an epilogue reads and writes with
// its shape, biases, data.
struct Distances {
  std::size_t a = 0, b = 0, c = 0, bias = 0, data = 0;
};

// C (m, n) = A (m, k) B (n, k)ᵀ, both with their neighbours along k; rows of memory are multiples of 16 bytes long, and
// what pads them is zero. An epilogue takes every element of C where it is made.
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

// Two neighbours of C, n even, by each of `lanes` lanes: epilogue(row, n, column, loaded, c, inside), where so many of
// the two are inside. Those that are not are another time the last of their row, so that nothing depends on a branch,
// and are not stored; their c may be anything. Where the epilogue sums rows, its return values (0 of what is not
// inside) are summed over the lanes, and row_sum(m, part, sum) is called once.
inline constexpr int row_sum_columns = 32;  // of a row, in one sum
struct PairPlace {
  int m, n;    // of what is read
  int inside;  // of the two
  __device__ PairPlace(int row, int column, int rows, int columns)
      : m(min(row, rows - 1)), n(min(column, (columns - 1) & ~1)), inside(row < rows ? columns - column : 0) {}
};
template <int lanes, class Epilogue, class Column>
__device__ __forceinline__ void finish_pair(const Epilogue& epilogue, const PairPlace& place,
                                            const typename Epilogue::Row& row, const Column& column,
                                            const typename Epilogue::Loaded& loaded, const float2& c, int part) {
  if constexpr (Epilogue::sums_rows) {
    float sum = epilogue(row, place.n, column, loaded, c, place.inside);
#pragma unroll
    for (int offset = lanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (threadIdx.x % lanes == 0 && place.inside > 0) epilogue.row_sum(place.m, part, sum);
  } else {
    epilogue(row, place.n, column, loaded, c, place.inside);
  }
}

// Products of the same shape side by side: of some networks of a run, and of several runs.
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
