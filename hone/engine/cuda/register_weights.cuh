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
    const Tile tile = tile_of(place);
    const int row = 16 * tile.row + 2 * g_, k = 16 * tile.k + (tile.by_parity ? 4 : 2) * t_;
    const int next = tile.by_parity ? 2 : 1, second = tile.by_parity ? 1 : 8;
    const auto pair = [&](int r, int k0) { return packed(tile.weight(r, k0), tile.weight(r, k0 + next)); };
    return {{pair(row, k), pair(row + 1, k), pair(row, k + second), pair(row + 1, k + second)}};
  }

 private:
  // A tile's rows and k: units of a layer and of the one before it, or the other way round. k as it lies, or as
  // `transposed` leaves it.
  struct Tile {
    const float* from;
    int row, k, rows, ks, row_stride, k_stride;
    bool by_parity;

    __device__ float weight(int r, int at_k) const {  // what is not there is 0
      return r < rows && at_k < ks ? from[r * row_stride + at_k * k_stride] : 0.0f;
    }
  };
  __device__ Tile forward(int l, int row, int k, bool by_parity) const {
    const Layer& layer = net_.layer[l];
    return {parameters_ + layer.weight, row, k, layer.outputs, layer.inputs, 1, layer.ld, by_parity};
  }
  __device__ Tile back(int l, int row, int k, bool by_parity) const {
    const Layer& layer = net_.layer[l];
    return {parameters_ + layer.weight, row, k, layer.inputs, layer.outputs, layer.ld, 1, by_parity};
  }
  __device__ Tile tile_of(int place) const {
    if constexpr (Shape::hidden) {
      if (place < Shape::second_back) return forward(0, warp_, place, false);
      if (place < Shape::first_back)
        return back(1, warp_, Shape::blocks * (place - Shape::second_back) + rank_, true);
      if (place < Shape::in_shared) return back(0, place - Shape::first_back, warp_, true);
      if (warp_ >= Shape::second_warp)
        return forward(1, Shape::blocks * (warp_ - Shape::second_warp) + rank_, place - Shape::in_shared, true);
    }
    constexpr int l = Shape::hidden ? 2 : 0;
    const Slice pixels(net_.layer[l], Shape::blocks, rank_);
    const int i = place - Shape::in_shared;
    Tile tile;
    if (Shape::hidden ? warp_ < Shape::back_warp : i < Shape::forward_steps) {
      tile = forward(l, warp_, i, Shape::hidden);
      tile.rows = pixels.count;
    } else {
      const int to = i - Shape::own_back;
      tile = back(l,
                  Shape::hidden ? warp_ - Shape::back_warp + to / Shape::back_steps * Shape::back_warps
                                : warp_ % Shape::latent_tiles,
                  to % Shape::back_steps, false);
      tile.ks = pixels.count;
    }
    tile.from += pixels.begin;
    return tile;
  }

  const Net& net_;
  const float* parameters_;
  int rank_;
  const int warp_ = static_cast<int>(threadIdx.x) / 32, g_ = static_cast<int>(threadIdx.x) % 32 / 4,
            t_ = static_cast<int>(threadIdx.x) % 4;
};

#endif

}  // namespace hone::cuda
