#pragma once

#include <algorithm>

#include "hone/engine/cuda/device/cluster.cuh"
#include "hone/engine/cuda/update/update.cuh"

namespace hone::cuda {

// A block's share of the pixels: `width` of every block but the last ones, whole tiles; `count` of this one, perhaps
// none (≤ 0).
struct Slice {
  int width, begin, count;

  __device__ Slice(int outputs, int blocks, int rank)
      : width(round_up(ceil_div(outputs, blocks), 16)),
        begin(rank * width),
        count(width < outputs - begin ? width : outputs - begin) {}
  __device__ int unit(int local) const { return local < count ? begin + local : -1; }  // −1: it is not there
};

// A tile of packed weights: of `copies` blocks from `rank` on, at place `place` of the threads of warp `warp`; its k as
// it lies, or as `transposed` leaves it.
struct PackedTile {
  int rank, copies, place, warp;
  bool by_parity;
};

// A decoder with two hidden layers whose weights stay in the registers of a cluster: up to 16, 208, 208 and 896 units,
// as tiles of 16. A block owns a slice of the pixels, and tiles rank, rank + blocks … of the second
// hidden layer.
struct TwoHiddenLayers {
  static constexpr int blocks = 8, first_tiles = 13, second_tiles = 13, pixel_tiles = 7;
  static constexpr bool hidden = true;
  static constexpr int owned_tiles = (second_tiles + blocks - 1) / blocks;  // of the second layer, of a block at most

  // A warp's part of the last layer. Forward it has a tile of pixels and all of k. Back, warps that have no pixels
  // share the tiles below, two each. The remaining warps have the second layer's forward products.
  static constexpr int back_warp = pixel_tiles, back_warps = (second_tiles + 1) / 2, back_tiles = 2;
  static constexpr int second_warp = back_warp + back_warps;
  static_assert(first_tiles <= second_warp && second_warp + owned_tiles <= warps && blocks <= warps);

  // A thread's fragments. Those of the hidden layers, which are few, are in shared memory (warp = tile of the first
  // layer, as results or as k). The others are in its own registers: of the last layer forward or back, or of the
  // second layer (k = tiles of the first).
  static constexpr int own = std::max({second_tiles, back_tiles* pixel_tiles, first_tiles});
  enum Place {
    first_forward = 0,
    second_back = 1,
    first_back = second_back + owned_tiles,
    in_shared,
    fragments = in_shared + own
  };
  static constexpr int packed_blocks = blocks;  // each has fragments of its own

  // Where the tile of weights from 16 inputs to 16 outputs lies, in a layer with this many `outputs`.
  static __device__ PackedTile forward(int layer, int in, int out, int outputs) {
    if (layer == 0)  // in = 0
      return {.rank = 0, .copies = blocks, .place = first_forward + in, .warp = out, .by_parity = false};
    if (layer == 1)
      return {.rank = out % blocks,
              .copies = 1,
              .place = in_shared + in,
              .warp = second_warp + out / blocks,
              .by_parity = true};
    const int width = slice_tiles(outputs);
    return {.rank = out / width, .copies = 1, .place = in_shared + in, .warp = out % width, .by_parity = true};
  }
  static constexpr bool goes_back = true;  // tiles of outputs' rows are there too
  static __device__ PackedTile back(int layer, int in, int out, int outputs) {
    if (layer == 0) return {.rank = 0, .copies = blocks, .place = first_back + in, .warp = out, .by_parity = true};
    if (layer == 1)
      return {.rank = out % blocks, .copies = 1, .place = second_back + out / blocks, .warp = in, .by_parity = true};
    const int width = slice_tiles(outputs);
    return {.rank = out / width,
            .copies = 1,
            .place = in_shared + in / back_warps * pixel_tiles + out % width,
            .warp = back_warp + in % back_warps,
            .by_parity = false};
  }

  static constexpr bool holds(const Net& net) {
    return net.depth == 3 && net.inputs() <= 16 && net.outputs() <= blocks * 16 * pixel_tiles &&
           net.layer[0].outputs <= 16 * first_tiles && net.layer[1].outputs <= 16 * second_tiles;
  }

 private:
  static __device__ int slice_tiles(int outputs) { return Slice(outputs, blocks, 0).width / 16; }
};

// Without hidden layers every block has all weights, and chains of its own: nothing crosses. A warp has tiles warp,
// warp + 16 … of pixels in its registers; four warps share each of the remaining tiles, in shared memory.
struct NoHiddenLayers {
  static constexpr int blocks = 8, latent_tiles = 4, own_tiles = 3, extra_tiles = warps / latent_tiles;
  static constexpr int own = own_tiles * latent_tiles, in_shared = 1, fragments = in_shared + own, packed_blocks = 1;
  static constexpr bool hidden = false;
  static constexpr int pixel_tiles = warps * own_tiles + extra_tiles;  // up to 64 dimensions, 832 pixels

  static __device__ PackedTile forward(int, int in, int out, int) {
    if (out < warps * own_tiles)
      return {.rank = 0,
              .copies = 1,
              .place = in_shared + out / warps * latent_tiles + in,
              .warp = out % warps,
              .by_parity = false};
    return {
        .rank = 0, .copies = 1, .place = 0, .warp = (out - warps * own_tiles) * latent_tiles + in, .by_parity = false};
  }
  static constexpr bool goes_back = false;

  static constexpr bool holds(const Net& net) {
    return net.depth == 1 && net.inputs() <= 16 * latent_tiles && net.outputs() <= 16 * pixel_tiles;
  }
};

// (16, 16) weights of a product, lane = 4 g + t: row 2 g of the tile at k, row 2 g + 1 at k, and both at the second
// k's. So the sums that a lane gets belong to a pair of neighbouring units.
struct alignas(16) Fragment {
  unsigned a[4];
};

// Weights `weight[row · by_row + k · by_k]` of a tile as a lane's fragment.
__device__ __forceinline__ Fragment fragment_of(const float* weight, int by_row, int by_k, bool by_parity) {
  const int lane = this_lane(), next = by_parity ? 2 : 1, second = by_parity ? 1 : 8;
  weight += lane / 4 * 2 * by_row + lane % 4 * 2 * next * by_k;
  const auto pair = [&](int row, int k) {
    const float* w = weight + row * by_row + k * by_k;
    return packed(w[0], w[next * by_k]);
  };
  return {{pair(0, 0), pair(1, 0), pair(0, second), pair(1, second)}};
}

// Part of a decoder's layer, `tiles` tiles of 16 inputs (rows) by as many of outputs, to its places among the
// fragments; what is outside of the layer is 0 and stays so. All warps of the block.
template <class Shape>
__device__ __forceinline__ void pack_fragments(Fragment* to, const UpdateTask& task, const float* theta, int stride,
                                               int tiles) {
  const int lane = this_lane();
#pragma unroll 1
  for (int i = this_warp(); i < tiles * tiles; i += static_cast<int>(blockDim.x) / 32) {
    const int row = i / tiles * 16, col = i % tiles * 16, in = (task.row0 + row) / 16, out = (task.col0 + col) / 16;
    if (16 * in >= task.rows || 16 * out >= task.cols) continue;
    const float* weight = theta + row * stride + col;
    const auto place = [&](const PackedTile& tile, const Fragment& fragment) {
#pragma unroll 1
      for (int rank = tile.rank; rank < tile.rank + tile.copies; ++rank)
        to[((rank * Shape::fragments + tile.place) * warps + tile.warp) * 32 + lane] = fragment;
    };
    const PackedTile forward = Shape::forward(task.packed_layer, in, out, task.cols);
    place(forward, fragment_of(weight, 1, stride, forward.by_parity));
    if constexpr (Shape::goes_back) {
      const PackedTile back = Shape::back(task.packed_layer, in, out, task.cols);
      place(back, fragment_of(weight, stride, 1, back.by_parity));
    }
  }
}

// b: (k, chain g)
__device__ __forceinline__ void multiply_add(Sums& c, const Fragment& a, uint2 b) { mma_halves(c, a.a, b.x, b.y); }

// start + Σ_i a(i) b(i), several sums at a time, since a product waits for the one before it: four where there is one
// tile of chains, else two.
template <int steps, int chain_tiles, class A, class B>
__device__ __forceinline__ Sums sum_of_products(const Sums& start, A a, B b) {
  constexpr int side_by_side = chain_tiles == 1 ? 4 : 2;
  Sums c[side_by_side] = {start};
  for (int i = 0; i < steps; ++i) multiply_add(c[i % side_by_side], a(i), b(i));
  if constexpr (side_by_side == 4 && steps > 2) return (c[0] + c[1]) + (c[2] + c[3]);
  return steps > 1 ? c[0] + c[1] : c[0];
}

// (8, 8) halves the other way round
__device__ __forceinline__ unsigned transposed(unsigned word) {
  unsigned result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
  return result;
}

// A thread's own fragments from number `staged` on, to its registers.
template <class Decoder>
__device__ __forceinline__ void take_rest(Decoder& decoder, const Fragment* from, int staged) {
  from += Decoder::Shape::in_shared * threads + threadIdx.x;
  for (int i = 0; i < Decoder::Shape::own; ++i)
    if (i >= staged) decoder.own(i) = from[i * threads];
}
// Loads a decoder's fragments from where they were packed, the first to shared memory, where they stay, a thread's own
// to its registers; and its vectors, which are what else it needs.
template <class Decoder>
__device__ __forceinline__ void load(Decoder& decoder) {
  decoder.begin_vectors();
  Fragment* const resident = decoder.resident();
  const Fragment* const from = decoder.packed_weights();
  take_rest(decoder, from, 0);
  for (int i = 0; i < Decoder::Shape::in_shared; ++i)
    resident[i * threads + threadIdx.x] = from[i * threads + threadIdx.x];
  decoder.take_vectors();
  __syncthreads();
}
// The same in two parts, with other work between them: `staged` of a thread's own wait in shared memory, and
// `load_rest` may come in between (`has_rest`: it did).
template <class Decoder>
__device__ __forceinline__ void begin_load(const Decoder& decoder, const Mailbox& box, char* stage, int staged) {
  constexpr int bytes = threads * static_cast<int>(sizeof(Fragment)), in_shared = Decoder::Shape::in_shared;
  Fragment* const resident = decoder.resident();
  const Fragment* const from = decoder.packed_weights();
  if (threadIdx.x == 0) {
    copy_bytes(resident, from, in_shared * bytes, box);
    if (staged > 0) copy_bytes(stage, from + in_shared * threads, staged * bytes, box);
    box.expect((in_shared + staged) * bytes);
  }
  decoder.begin_vectors();
}
template <class Decoder>
__device__ __forceinline__ void load_rest(Decoder& decoder, int staged) {
  take_rest(decoder, decoder.packed_weights(), staged);
  decoder.take_vectors();
}
template <bool has_rest, class Decoder>
__device__ __forceinline__ void load_staged(Decoder& decoder, const Mailbox& box, const char* stage, int staged) {
  const Fragment* const from = decoder.packed_weights() + (Decoder::Shape::in_shared * threads + threadIdx.x);
  box.wait(0);
  for (int i = 0; i < Decoder::Shape::own; ++i) {
    const Fragment* place = reinterpret_cast<const Fragment*>(stage) + i * threads + threadIdx.x;
    if constexpr (!has_rest)
      decoder.own(i) = i < staged ? *place : from[i * threads];
    else if (i < staged)
      decoder.own(i) = *place;
  }
  if constexpr (!has_rest) decoder.take_vectors();
  __syncthreads();
}

}  // namespace hone::cuda
