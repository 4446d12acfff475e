#pragma once

#include <algorithm>

#include "hone/engine/cuda/cluster.cuh"
#include "hone/engine/cuda/network.cuh"

namespace hone::cuda {

// How large a decoder with two hidden layers may be whose weights stay in the registers of a cluster, as tiles of 16
// units. A block owns a slice of the pixels, and tiles rank, rank + blocks … of the second hidden layer.
template <int blocks_, int latent_tiles_, int first_tiles_, int second_tiles_, int pixel_tiles_>
struct RegisterShape {
  static constexpr int blocks = blocks_, latent_tiles = latent_tiles_, first_tiles = first_tiles_,
                       second_tiles = second_tiles_, pixel_tiles = pixel_tiles_;
  static constexpr bool hidden = true;
  static constexpr int owned_tiles = (second_tiles + blocks - 1) / blocks;  // of the second layer, of a block at most

  // A warp's part of the last layer. Forward it has a tile of pixels and all of k. Back, warps that have no pixels share
  // the tiles below, two each. The warps that are left have the second layer's forward products.
  static constexpr int forward_steps = second_tiles, back_steps = pixel_tiles;
  static constexpr int back_warp = pixel_tiles, back_warps = (second_tiles + 1) / 2, back_tiles = 2;
  static constexpr int second_warp = back_warp + back_warps;
  static_assert(first_tiles >= 2 && first_tiles <= second_warp && second_warp + owned_tiles <= warps);
  static_assert(blocks <= warps);

  // A thread's fragments. Of the hidden layers, which are few, in shared memory (warp = tile of the first layer, be it
  // results or k); then those in its own registers: of the last layer forward or back, or of the second layer (k = tiles
  // of the first).
  static constexpr int own = std::max({forward_steps, back_tiles * back_steps, first_tiles});
  enum Place {
    first_forward = 0,
    second_back = latent_tiles,
    first_back = second_back + owned_tiles,
    in_shared = first_back + latent_tiles,
    fragments = in_shared + own
  };
  static constexpr int packed_blocks = blocks;  // each has fragments of its own

  static constexpr bool holds(const Net& net) {
    return net.depth == 3 && net.inputs() <= 16 * latent_tiles && net.outputs() <= blocks * 16 * pixel_tiles &&
           net.layer[0].outputs <= 16 * first_tiles && net.layer[1].outputs <= 16 * second_tiles;
  }
};
using TwoHiddenLayers = RegisterShape<8, 1, 13, 13, 7>;  // up to 16, 208, 208, 896 units

// Without hidden layers every block has all weights, and chains of its own: nothing crosses. A warp has tiles warp,
// warp + 16 … of pixels in its registers; those that are left, in shared memory, have four warps each.
struct NoHiddenLayers {
  static constexpr int blocks = 8, latent_tiles = 4, own_tiles = 3, extra_tiles = warps / latent_tiles;
  static constexpr int own = own_tiles * latent_tiles, in_shared = 1, fragments = in_shared + own, packed_blocks = 1;
  static constexpr bool hidden = false;
  static constexpr int pixel_tiles = warps * own_tiles + extra_tiles;  // up to 64 dimensions, 832 pixels

  static constexpr bool holds(const Net& net) {
    return net.depth == 1 && net.inputs() <= 16 * latent_tiles && net.outputs() <= 16 * pixel_tiles;
  }
};

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

// b: (k, chain g)
__device__ __forceinline__ void multiply_add(Sums& c, const Fragment& a, uint2 b) { mma_halves(c, a.a, b.x, b.y); }

// (8, 8) halves the other way round
__device__ __forceinline__ unsigned transposed(unsigned word) {
  unsigned result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
  return result;
}
// A block's fragments come from where `prepare` packed them: the first to shared memory, where they stay; a thread's own
// to its registers. Or in two parts, between which they come: `staged` of the own ones lie in shared memory for a while.
template <class Shape>
__device__ __forceinline__ void take_fragments(Fragment (&own)[Shape::own], Fragment* resident, const Fragment* from) {
  from += threadIdx.x;
#pragma unroll
  for (int i = 0; i < Shape::own; ++i) own[i] = from[(Shape::in_shared + i) * threads];
#pragma unroll
  for (int i = 0; i < Shape::in_shared; ++i) resident[i * threads + threadIdx.x] = from[i * threads];
}
template <class Shape>
__device__ __forceinline__ void begin_fragments(Fragment* resident, const Fragment* from, const Mailbox& box,
                                                char* stage, int staged) {
  constexpr int bytes = threads * static_cast<int>(sizeof(Fragment)), in_shared = Shape::in_shared;
  if (threadIdx.x != 0) return;
  copy_bytes(resident, from, in_shared * bytes, box);
  if (staged > 0) copy_bytes(stage, from + in_shared * threads, staged * bytes, box);
  box.expect((in_shared + staged) * bytes);
}
template <class Shape>
__device__ __forceinline__ void take_staged(Fragment (&own)[Shape::own], const Fragment* from, const Mailbox& box,
                                            const char* stage, int staged) {
  from += Shape::in_shared * threads + threadIdx.x;
  box.wait(0);
#pragma unroll
  for (int i = 0; i < Shape::own; ++i)
    own[i] = i < staged ? reinterpret_cast<const Fragment*>(stage)[i * threads + threadIdx.x] : from[i * threads];
}

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
    const int i = place - Shape::in_shared;
    if constexpr (!Shape::hidden) {
      constexpr int steps = Shape::latent_tiles;
      return i >= 0 ? forward(0, warp_ + warps * (i / steps), i % steps, false)
                    : forward(0, warps * Shape::own_tiles + warp_ / steps, warp_ % steps, false);
    } else {
      if (place < Shape::second_back) return forward(0, warp_, place, false);
      if (place < Shape::first_back) return back(1, warp_, Shape::blocks * (place - Shape::second_back) + rank_, true);
      if (i < 0) return back(0, place - Shape::first_back, warp_, true);
      if (warp_ >= Shape::second_warp)
        return forward(1, Shape::blocks * (warp_ - Shape::second_warp) + rank_, i, true);
      const Slice pixels(net_.layer[2], Shape::blocks, rank_);
      Tile tile;
      if (warp_ < Shape::back_warp) {
        tile = forward(2, warp_, i, true);
        tile.rows = pixels.count;
      } else {
        tile = back(2, warp_ - Shape::back_warp + i / Shape::back_steps * Shape::back_warps, i % Shape::back_steps,
                    false);
        tile.ks = pixels.count;
      }
      tile.from += pixels.begin;
      return tile;
    }
  }

  const Net& net_;
  const float* parameters_;
  int rank_;
  const int warp_ = static_cast<int>(threadIdx.x) / 32, g_ = static_cast<int>(threadIdx.x) % 32 / 4,
            t_ = static_cast<int>(threadIdx.x) % 4;
};

#endif

}  // namespace hone::cuda
