#pragma once

#include <algorithm>

#include "hone/engine/cuda/device/cluster.cuh"
#include "hone/engine/cuda/product/network.cuh"

namespace hone::cuda {

// The first layer of the encoder's networks, if the refinement's kernel computes the others. Data are bits then, and
// the update multiplies new weights by the next minibatch at once, in parts of k; the refinement's kernel adds up the
// parts.
struct FirstLayerSums {
  static constexpr int words = 4;  // of 64 bits, of a part at most
  int parts = 0;                   // 0: it goes by products
  float* sums = nullptr;           // (part, network, batch, ld)
  std::size_t of_part = 0;         // floats from a part to the next
};

// The encoder's networks for means and for deviations, of one shape. The second's parameters lie `net_parameters`
// floats further, its rows of the tape behind the first's.
struct EncoderSpec {
  Net net;
  std::size_t net_parameters;
  Tape tape;
  FirstLayerSums first;
};

// How blocks share the encoder's work, and their layout of shared memory.

// Floats from a row to the next where fragments lie along it, and where they lie across: every bank once. Across, a
// tile that is not full reads into the next row.
constexpr int stride_along(int k) { return round_up(k, 8) + 4; }
constexpr int stride_across(int units) { return round_up(units - 8, 16) + 8; }

// A matrix in shared memory: rows `stride` floats apart.
struct Block {
  int at = 0, stride = 0;
};

// Places in shared memory, in floats; they may exceed what a block has.
struct FloatPlaces : PlacesOf<long long, 16> {
  int take(long long floats) { return static_cast<int>(PlacesOf::take<float>(floats) / 4); }
  Block take(int count, int stride) { return {take(static_cast<long long>(count) * stride), stride}; }
  // Makes `count` rows of a matrix readable, whatever they hold.
  void cover(const Block& block, int count) {
    size_ = std::max(size_, 4 * (block.at + static_cast<long long>(count) * block.stride));
  }
};

// A cluster carries eight rows of the batch through the two layers above the first. Half of its blocks have the means'
// network and half the deviations'; each block owns a range of a layer's units. A product is units × rows, so that few
// rows waste nothing. Weights keep their layout, with rows of `ld` floats; what a product reads beyond their ends is
// cleared, or is a weight that is multiplied by 0.
struct EncoderSplit {
  static constexpr int depth = 3, rows = 8, nets = 2, parts = 4, blocks = nets * parts, unit_tile = 16, pad = 16;
  static_assert(blocks == rows);  // a block has a datum of its own
  enum Box { received_box, encode_box, ascend_box, deltas_box, stage_box, box_count };  // at the beginning
  static constexpr int tiles_of(int units) { return ceil_div(units, unit_tile); }
  // Units of a layer that one of a network's blocks owns at most.
  static constexpr int owned(int units) { return round_up(ceil_div(units, parts), 4); }
  static void take_boxes(FloatPlaces& places) { places.take(2 * box_count); }
};

// units × k times k × rows: 2^shift warps share the k of a tile of units.
struct RowProduct : EncoderSplit {
  int tiles = 0, k = 0, shift = 0;

  RowProduct() = default;
  RowProduct(int units, int k_) : tiles(tiles_of(units)), k(k_) {
    while (tiles << (shift + 1) <= warps && 8 << (shift + 1) <= round_up(k, 8)) ++shift;
  }
  int sums() const { return tiles * unit_tile * rows << shift; }
};

struct EncodeShape : EncoderSplit {
  int most = 0;  // units below the last layer that a block owns at most
  RowProduct inner, top;
  Block x, weight, h, top_weight;
  int bias = 0, sums = 0, received = 0, received_size = 0;
  Block top_bias;  // of both networks
  int noise = 0;   // doubles, (rows, D)
  long long bytes = 0;

  EncodeShape() = default;
  EncodeShape(const Net& net, int latent) {
    const Layer& last = net.layer[depth - 1];
    const int k = net.layer[1].inputs;
    most = owned(last.inputs);
    inner = RowProduct(most, k);
    top = RowProduct(latent, most);
    FloatPlaces places;
    take_boxes(places);
    x = places.take(rows, stride_along(k));
    weight = places.take(round_up(k, 8), stride_across(most));
    bias = places.take(most);
    h = places.take(rows, stride_along(most));
    top_weight = places.take(round_up(most, 8), last.ld);
    places.take(pad);
    top_bias = places.take(nets, padded_width(latent));
    sums = places.take(std::max(inner.sums(), top.sums()));
    received_size = rows * tiles_of(latent) * unit_tile;
    received = places.take(static_cast<long long>(blocks) * received_size);
    noise = places.take(2LL * rows * latent);
    bytes = places.bytes();
  }
};

struct AscendShape : EncoderSplit {
  int most = 0;  // units of the first layer that a block owns at most
  RowProduct top, inner;
  Block top_weight, value, delta, weight, first_value;
  int deltas = 0, deltas_stride = 0, sums = 0;
  long long bytes = 0;

  AscendShape() = default;
  AscendShape(const Net& net, int latent) {
    const Layer& last = net.layer[depth - 1];
    const int units = last.inputs;
    most = owned(net.layer[0].outputs);
    inner = RowProduct(most, units);
    top = RowProduct(units, latent);
    FloatPlaces places;
    take_boxes(places);
    top_weight = places.take(units, last.ld);
    places.take(pad);
    weight = places.take(most, padded_width(units));
    places.take(pad);
    value = places.take(rows, padded_width(units));
    delta = places.take(rows, stride_along(units));
    first_value = places.take(rows, most);
    deltas_stride = stride_along(latent);
    deltas = places.take(rows * deltas_stride);  // of the block's network
    sums = places.take(std::max(inner.sums(), top.sums()));
    places.cover(top_weight, top.tiles * unit_tile);  // a tile that is not full reads on
    places.cover(weight, inner.tiles * unit_tile);
    bytes = places.bytes();
  }
};

}  // namespace hone::cuda
