#pragma once

#include "hone/engine/cuda/device/math.cuh"
#include "hone/engine/cuda/product/network.cuh"

namespace hone::cuda {

// Weights of a decoder by tiles, for warps that carry 16 rows: what one product sums is what the next one reads. A tile
// is (16, 16) weights as halves, four matrices (8, 8) of one line per output unit: outputs 0 to 7 with inputs 0 to 7
// and 8 to 15, then outputs 8 to 15. It serves forward and, transposed, back. Tiles of a layer: for every 16 outputs (a
// pair of the products' columns) all inputs.
inline constexpr int tile_lines = 32;    // of 16 bytes
inline constexpr int hidden_steps = 13;  // tiles of a hidden layer's units: up to 208

// Line i of a layer's tiles; `steps` tiles cover the layer's inputs.
__device__ __forceinline__ uint4 packed_line(const float* parameters, const Layer& layer, int steps, int i) {
  const int tile = i / tile_lines, line = i % tile_lines;
  const int to = 16 * (tile / steps) + line / 16 * 8 + line % 8, from = 16 * (tile % steps) + line / 8 % 2 * 8;
  const auto weight = [&](int k) {
    return to < layer.outputs && from + k < layer.inputs
               ? parameters[layer.weight + static_cast<std::size_t>(from + k) * layer.ld + to]
               : 0.0f;
  };
  return make_uint4(packed(weight(0), weight(1)), packed(weight(2), weight(3)), packed(weight(4), weight(5)),
                    packed(weight(6), weight(7)));
}

__device__ __forceinline__ float bias_of(const float* parameters, const Layer& layer, int unit, float missing) {
  return unit < layer.outputs ? parameters[layer.bias + unit] : missing;
}

// Two rows' worth of z's, values or deltas of 16 units: a of mma_halves
struct Rows {
  unsigned a[4];
};
struct Matrices {
  unsigned m[4];
};
template <bool transposed = false>
__device__ __forceinline__ Matrices load_tile(const uint4* tile) {
  Matrices r;
  load_matrices<transposed>(r.m, static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x % 32)));
  return r;
}

// Sums of 16 output units over all inputs. Even and odd tiles have their own sums, so that fewer wait for each other.
template <int steps>
__device__ __forceinline__ void forward(Sums (&c)[2], const Rows (&h)[steps], const uint4* tiles) {
  Sums odd[2] = {};
  for (int s = 0; s < steps; ++s) {
    const Matrices w = load_tile(tiles + tile_lines * s);
    Sums* to = s % 2 == 0 ? c : odd;
    mma_halves(to[0], h[s].a, w.m[0], w.m[1]);
    mma_halves(to[1], h[s].a, w.m[2], w.m[3]);
  }
  if constexpr (steps > 1) {
    c[0] = c[0] + odd[0];
    c[1] = c[1] + odd[1];
  }
}

// What 16 output units' deltas add to the sums of all inputs.
template <int columns>
__device__ __forceinline__ void back(Sums (&c)[columns], const Rows& delta, const uint4* tiles) {
  for (int s = 0; s < columns / 2; ++s) {
    const Matrices w = load_tile<true>(tiles + tile_lines * s);
    mma_halves(c[2 * s], delta.a, w.m[0], w.m[2]);
    mma_halves(c[2 * s + 1], delta.a, w.m[1], w.m[3]);
  }
}

__device__ __forceinline__ Rows as_rows(const Sums& low, const Sums& high) {
  return {{packed(low.x, low.y), packed(low.z, low.w), packed(high.x, high.y), packed(high.z, high.w)}};
}
// Deltas of units whose value is not 0
__device__ __forceinline__ Rows where_positive(const Rows& value, Rows delta) {
  for (int i = 0; i < 4; ++i) delta.a[i] &= __vcmpne2(value.a[i], 0);
  return delta;
}

// Σ log p over the pixels that a lane sees of one row: Σ x a − max(a, 0) − log Π (1 + exp(−|a|)).
struct RowSum {
  float sum = 0, product = 1;

  // returns d log p / da
  __device__ __forceinline__ float add(float a, float x) {
    const float tail = exponential<Math::tf32>(-fabsf(a));
    sum += x * a - fmaxf(a, 0.0f);
    product += product * tail;
    return x - (a < 0.0f ? tail : 1.0f) * __fdividef(1.0f, 1.0f + tail);
  }
  __device__ __forceinline__ float total() {
    sum -= __logf(product);
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
    return sum + __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
  }
};

}  // namespace hone::cuda
