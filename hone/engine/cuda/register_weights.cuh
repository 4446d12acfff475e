#pragma once

#include <algorithm>

#include "hone/engine/cuda/cluster.cuh"
#include "hone/engine/cuda/network.cuh"

namespace hone::cuda {

// How large a decoder may be whose weights stay in the registers of a cluster, as tiles of 16 units. `first_tiles` = 0:
// no hidden layers; else two. A block owns a slice of the pixels, and tiles rank, rank + blocks … of the second hidden
// layer.
template <int blocks_, int latent_tiles_, int first_tiles_, int second_tiles_, int pixel_tiles_>
struct RegisterShape {
  static constexpr int blocks = blocks_, latent_tiles = latent_tiles_, first_tiles = first_tiles_,
                       second_tiles = second_tiles_, pixel_tiles = pixel_tiles_;
  static constexpr bool hidden = first_tiles > 0;
  static constexpr int owned_tiles = (second_tiles + blocks - 1) / blocks;  // of the second layer, of a block at most

  // A warp's part of the last layer. Forward it has a tile of pixels and all of k. Back, with hidden layers, warps that
  // have no pixels share the tiles below, two each; without, every warp has a tile of z, and those of one tile share
  // the chains where there are more than 8.
  static constexpr int forward_steps = hidden ? second_tiles : latent_tiles, back_steps = pixel_tiles;
  static constexpr int back_warp = hidden ? pixel_tiles : 0, back_warps = hidden ? (second_tiles + 1) / 2 : warps,
                       back_tiles = hidden ? 2 : 1;
  // The warps that are left have the second layer's forward products.
  static constexpr int second_warp = back_warp + back_warps;
  static_assert(first_tiles <= warps && pixel_tiles <= warps && (hidden || warps % latent_tiles == 0));
  static_assert(!hidden || (first_tiles >= 2 && first_tiles <= second_warp && second_warp + owned_tiles <= warps));
  static_assert(blocks % 2 == 0 && blocks <= warps);

  // A thread's fragments. Of the hidden layers, which are few, in shared memory (warp = tile of the first layer, be it
  // results or k); then those in its own registers: of the last layer forward or back (or both, one after the other,
  // without hidden layers), or of the second layer (k = tiles of the first).
  static constexpr int own = hidden ? std::max({forward_steps, back_tiles * back_steps, first_tiles})
                                    : forward_steps + back_steps,
                       own_back = hidden ? 0 : forward_steps;
  enum Place {
    first_forward = 0,
    second_back = latent_tiles,
    first_back = second_back + owned_tiles,
    in_shared = hidden ? first_back + latent_tiles : 0,
    fragments = in_shared + own
  };

  static constexpr bool holds(const Net& net) {
    if (net.depth != (hidden ? 3 : 1) || net.inputs() > 16 * latent_tiles) return false;
    if (net.outputs() > blocks * 16 * pixel_tiles) return false;
    return !hidden || (net.layer[0].outputs <= 16 * first_tiles && net.layer[1].outputs <= 16 * second_tiles);
  }
};
using TwoHiddenLayers = RegisterShape<8, 1, 13, 13, 7>;  // up to 16, 208, 208, 896 units
using NoHiddenLayers = RegisterShape<4, 4, 0, 0, 13>;    // up to 64, 832

// A block's share of the pixels: `width` of every block but the last ones, `count` of this one.
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

// A block's fragments from a decoder's parameters. What is beyond a layer's units is 0.
template <class Shape>
class RegisterWeights {
 public:
  __device__ RegisterWeights(const Net& net, const float* parameters, int rank)
      : net_(net), parameters_(parameters), rank_(rank) {}

  __device__ Fragment operator()(int place) const {
    if constexpr (Shape::hidden) {
      if (place < Shape::in_shared) return of_hidden(place);
      if (warp_ >= Shape::second_warp)
        return fragment(Shape::blocks * (warp_ - Shape::second_warp) + rank_,
                        by_parity(place - Shape::in_shared), [&](int to, int from) { return weight(1, from, to); });
    }
    constexpr int l = Shape::hidden ? 2 : 0;
    const Slice pixels(net_.layer[l], Shape::blocks, rank_);
    const int i = place - Shape::in_shared;
    if (Shape::hidden ? warp_ < Shape::back_warp : i < Shape::forward_steps)
      return fragment(warp_, Shape::hidden ? by_parity(i) : in_order(i),
                      [&](int local, int from) { return weight(l, from, pixels.unit(local)); });
    const int back = i - Shape::own_back;
    const int tile = Shape::hidden ? warp_ - Shape::back_warp + back / Shape::back_steps * Shape::back_warps
                                   : warp_ % Shape::latent_tiles;
    return fragment(tile, in_order(back % Shape::back_steps),
                    [&](int from, int local) { return weight(l, from, pixels.unit(local)); });
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
    if (place < Shape::second_back)
      return fragment(warp_, in_order(place), [&](int unit, int d) { return weight(0, d, unit); });
    if (place < Shape::first_back)
      return fragment(warp_, by_parity(Shape::blocks * (place - Shape::second_back) + rank_),
                      [&](int unit, int to) { return weight(1, unit, to); });
    return fragment(place - Shape::first_back, by_parity(warp_), [&](int d, int unit) { return weight(0, d, unit); });
  }
  // What is not there is 0.
  __device__ float weight(int l, int from, int to) const {
    const Layer& layer = net_.layer[l];
    const bool there = from >= 0 && from < layer.inputs && to >= 0 && to < layer.outputs;
    return there ? parameters_[layer.weight + static_cast<std::size_t>(from) * layer.ld + to] : 0.0f;
  }

  const Net& net_;
  const float* parameters_;
  int rank_;
  const int warp_ = static_cast<int>(threadIdx.x) / 32, g_ = static_cast<int>(threadIdx.x) % 32 / 4,
            t_ = static_cast<int>(threadIdx.x) % 4;
};

#endif

}  // namespace hone::cuda
