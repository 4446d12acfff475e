#pragma once

#include <cuda_fp16.h>

#include "hone/engine/cuda/cluster.cuh"
#include "hone/engine/cuda/network.cuh"

namespace hone::cuda {

// How large a decoder may be whose weights stay in the registers of a cluster, as tiles of 16 units. `first_tiles` = 0:
// no hidden layers; else two. A block holds slices of the second hidden layer (of `slice_pairs` pairs of units) and of
// the pixels.
template <int blocks_, int latent_tiles_, int first_tiles_, int slice_pairs_, int pixel_tiles_>
struct RegisterShape {
  static constexpr int blocks = blocks_, latent_tiles = latent_tiles_, first_tiles = first_tiles_,
                       slice_pairs = slice_pairs_, pixel_tiles = pixel_tiles_;
  static constexpr bool hidden = first_tiles > 0;
  static constexpr int second_pairs = blocks * slice_pairs, second_tiles = second_pairs / 8;
  static constexpr int slice_tiles = (slice_pairs + 7) / 8;
  static_assert(second_pairs % 8 == 0 && first_tiles <= warps && second_tiles <= warps);
  static_assert(pixel_tiles * (hidden ? 2 : 1) <= warps && (hidden || warps % latent_tiles == 0));

  // steps of k of the last layer's forward product that a warp makes: with hidden layers two warps share a tile
  static constexpr int last_steps = hidden ? second_tiles : latent_tiles,
                       half_steps = hidden ? (second_tiles + 1) / 2 : latent_tiles;
  // without hidden layers, so many warps share a tile of the product back to z
  static constexpr int back_parts = hidden ? 1 : warps / latent_tiles,
                       back_steps = hidden ? pixel_tiles : (pixel_tiles + back_parts - 1) / back_parts;

  // A thread's fragments: of the hidden layers (warp = tile of the first layer, be it results or k), then of the last
  // (forward: warp = tile of pixels, and half of k; back: warp = tile of the second layer, or of z and part of k).
  enum Place {
    first_forward = 0,
    second_forward = latent_tiles,
    second_back = second_forward + slice_tiles,
    first_back = second_back + slice_tiles,
    last_forward = hidden ? first_back + latent_tiles : 0,
    last_back = last_forward + half_steps,
    fragments = last_back + back_steps
  };

  static constexpr bool holds(const Net& net) {
    if (net.depth != (hidden ? 3 : 1) || net.inputs() > 16 * latent_tiles) return false;
    if (net.outputs() > blocks * 16 * pixel_tiles) return false;
    return !hidden || (net.layer[0].outputs <= 16 * first_tiles && net.layer[1].outputs <= 2 * second_pairs);
  }
};
using TwoHiddenLayers = RegisterShape<8, 1, 13, 13, 7>;  // up to 16, 208, 208, 896 units
using NoHiddenLayers = RegisterShape<4, 4, 0, 0, 13>;    // up to 64, 832

// A block's share of a layer's outputs: `width` of every block but the last ones, `count` of this one.
struct Slice {
  int width, begin, count;

  __device__ Slice(const Layer& layer, int blocks, int rank)
      : width(ceil_div(layer.outputs, blocks)), begin(rank * width), count(min(width, layer.outputs - begin)) {}
  __device__ int unit(int local) const { return local < count ? begin + local : -1; }  // −1: it is not there
};

// (16, 16) weights of a product, lane = 4 g + t: row 2 g of the tile at k, row 2 g + 1 at k, and both at the second
// k's. So the sums that a lane gets belong to a pair of neighbouring units.
struct alignas(16) Fragment {
  unsigned a[4];
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Two numbers as halves, which have tf32's ten bits of mantissa; beyond 65504 they stay there.
__device__ __forceinline__ unsigned packed(float low, float high) {
  unsigned word;
  asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// A block's fragments from a decoder's parameters. What is beyond a layer's units is 0.
template <class Shape>
class RegisterWeights {
 public:
  __device__ RegisterWeights(const Net& net, const float* parameters, int rank)
      : net_(net), parameters_(parameters), rank_(rank) {}

  __device__ Fragment operator()(int place) const {
    if constexpr (Shape::hidden) {
      if (place < Shape::last_forward) return of_hidden(place);
    }
    const bool back = place >= Shape::last_back;
    const int i = place - (back ? Shape::last_back : Shape::last_forward);
    if (!back) {
      const int tile = Shape::hidden ? warp_ % Shape::pixel_tiles : warp_;
      const int step = (Shape::hidden ? warp_ / Shape::pixel_tiles * Shape::half_steps : 0) + i;
      return fragment(tile, in_order(step), [&](int local, int from) { return last(from, local); });
    }
    const int tile = Shape::hidden ? warp_ : warp_ % Shape::latent_tiles;
    const int step = Shape::hidden ? i : warp_ / Shape::latent_tiles + i * Shape::back_parts;
    return fragment(tile, in_order(step), [&](int from, int local) { return last(from, local); });
  }

 private:
  // k of a fragment: as they lie, or as `transposed` leaves them
  struct Columns {
    int k[4];
  };
  __device__ Columns in_order(int step) const {
    const int k = 16 * step + 2 * t_;
    return {{k, k + 1, k + 8, k + 9}};
  }
  __device__ Columns by_parity(int step) const {
    const int k = 16 * step + 4 * t_;
    return {{k, k + 2, k + 1, k + 3}};
  }
  template <class Weight>  // (row, k) → number
  __device__ Fragment fragment(int tile, const Columns& c, Weight weight) const {
    const int low = 16 * tile + 2 * g_, high = low + 1;
    return {{packed(weight(low, c.k[0]), weight(low, c.k[1])), packed(weight(high, c.k[0]), weight(high, c.k[1])),
             packed(weight(low, c.k[2]), weight(low, c.k[3])), packed(weight(high, c.k[2]), weight(high, c.k[3]))}};
  }
  __device__ Fragment of_hidden(int place) const {
    if (place < Shape::second_forward)
      return fragment(warp_, in_order(place), [&](int unit, int d) { return weight(0, d, unit); });
    if (place < Shape::second_back)
      return fragment(place - Shape::second_forward, by_parity(warp_),
                      [&](int local, int unit) { return second(unit, local); });
    if (place < Shape::first_back)
      return fragment(warp_, in_order(place - Shape::second_back),
                      [&](int unit, int local) { return second(unit, local); });
    return fragment(place - Shape::first_back, by_parity(warp_), [&](int d, int unit) { return weight(0, d, unit); });
  }

  __device__ float weight(int l, int from, int to) const {
    const Layer& layer = net_.layer[l];
    const bool there = from >= 0 && from < layer.inputs && to >= 0 && to < layer.outputs;
    return there ? parameters_[layer.weight + static_cast<std::size_t>(from) * layer.ld + to] : 0.0f;
  }
  __device__ float second(int unit, int local) const {
    return weight(1, unit, Slice(net_.layer[1], Shape::blocks, rank_).unit(local));
  }
  // From a unit of the second hidden layer, of which every block's slice fills so many pairs, or of z.
  __device__ float last(int from, int local) const {
    if constexpr (Shape::hidden) {
      const int owner = from / (2 * Shape::slice_pairs);
      from = Slice(net_.layer[1], Shape::blocks, owner).unit(from % (2 * Shape::slice_pairs));
    }
    const int l = Shape::hidden ? 2 : 0;
    return weight(l, from, Slice(net_.layer[l], Shape::blocks, rank_).unit(local));
  }

  const Net& net_;
  const float* parameters_;
  int rank_;
  const int warp_ = static_cast<int>(threadIdx.x) / 32, g_ = static_cast<int>(threadIdx.x) % 32 / 4,
            t_ = static_cast<int>(threadIdx.x) % 4;
};

#endif

}  // namespace hone::cuda
