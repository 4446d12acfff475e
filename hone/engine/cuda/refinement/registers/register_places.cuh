#pragma once

#include "hone/engine/cuda/refinement/refinement_plan.cuh"
#include "hone/engine/cuda/refinement/registers/register_weights.cuh"

namespace hone::cuda {

enum RegisterBox {
  second_box,
  sums_box,
  delta_box,
  gradient_box,
  box_count = gradient_box + 2
};  // two gradients in turn

// Where a block keeps what is not in registers. Activations and deltas lie as fragments, two words of two halves per
// lane, tile after tile for 8 chains, then for the next 8: a product reads its tile at once, without conflicts of
// banks.
template <int NT>
struct RegisterPlaces {
  using Shape = TwoHiddenLayers;
  static constexpr int NC = 8 * NT, dims = 16;
  int input = 0, first = 0, second = 0, mask = 0, residual = 0, delta = 0, parts = 0, sums = 0, gradients = 0,
      log_likelihoods = 0, partial_values = 0, first_sums = 0, boxes = 0, fragments = 0, bytes = 0;

  __host__ __device__ constexpr RegisterPlaces() {
    Places places;
    input = places.take<uint2>(32 * NT);
    first = places.take<uint2>(32 * NT * Shape::first_tiles);
    second = places.take<uint2>(32 * NT * Shape::second_tiles);
    mask = places.take<uint2>(32 * NT * Shape::owned_tiles);
    residual = places.take<uint2>(32 * NT * Shape::pixel_tiles);
    delta = places.take<uint2>(32 * NT * Shape::owned_tiles);
    sums = places.take<float4>(32 * NT * Shape::blocks * Shape::owned_tiles);
    parts = places.take<float4>(32 * NT * Shape::first_tiles);
    gradients = places.take<float>(2 * Shape::blocks * NC * dims);
    log_likelihoods = places.take<double>(2 * Shape::blocks * NC);
    partial_values = places.take<double>(Shape::pixel_tiles * NC);
    first_sums = places.take<float4>(32 * NT * Shape::blocks * Shape::owned_tiles);
    boxes = places.take<unsigned long long>(box_count);
    fragments = places.take<uint4>(threads * Shape::in_shared);
    bytes = places.bytes();
  }
  static constexpr bool keeps_first = NT == 1;
  __host__ __device__ constexpr ChainPlaces chains() const { return {bytes, NC, dims, keeps_first}; }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ __forceinline__ float2 unpacked(unsigned word) { return __half22float2(*reinterpret_cast<__half2*>(&word)); }

// Sums of a warp's product, lane = 4 g + t: (unit 2 g, chain 2 t), (2 g, 2 t + 1), (2 g + 1, 2 t), (2 g + 1, 2 t + 1);
// as halves: of unit 2 g, of unit 2 g + 1.
__device__ __forceinline__ uint2 packed(const Sums& c) { return {packed(c.x, c.y), packed(c.z, c.w)}; }
__device__ __forceinline__ Sums unpacked(uint2 words) {
  const float2 low = unpacked(words.x), high = unpacked(words.y);
  return {low.x, low.y, high.x, high.y};
}
__device__ __forceinline__ Sums for_all_chains(float2 bias) { return {bias.x, bias.x, bias.y, bias.y}; }
__device__ __forceinline__ Sums where_positive(uint2 values, const Sums& a) {
  const Sums h = unpacked(values);
  return {h.x > 0 ? a.x : 0.0f, h.y > 0 ? a.y : 0.0f, h.z > 0 ? a.z : 0.0f, h.w > 0 ? a.w : 0.0f};
}

// Results of one product as what the next reads: (g; 2 t, 2 t + 1) → (2 t, 2 t + 1; g), for even and for odd units. So
// k is there in the order of `by_parity`.
__device__ __forceinline__ uint2 transposed(uint2 words) { return {transposed(words.x), transposed(words.y)}; }

// Where a tile's word of a pair of units and a chain lies as b, k in order: two words of two halves per lane, tile
// after tile.
__device__ __forceinline__ int tile_word(int tile, int pair, int chain) {
  return (32 * tile + 4 * chain + pair % 4) * 2 + pair / 4;
}

#endif

}  // namespace hone::cuda
