#pragma once

#include "hone/engine/cuda/convolution/window_index.hpp"
#include "hone/engine/cuda/product/product.cuh"

namespace hone::cuda {

constexpr int padded_width(int units) { return round_up(units, 4); }  // floats per row: copies move 16 bytes

enum class LayerKind : char { dense, down, up };  // fully connected, or a convolution that goes that `Way`

// A layer's place in the parameters (floats). Weights are (inputs, ld), one row per input unit, ld ≥ outputs; those of
// a convolution are (depth, coarse) down and (coarse, depth) up, with a bias per channel.
struct Layer {
  int inputs, outputs, ld;
  std::size_t weight, bias;
  bool has_bias;
  LayerKind kind = LayerKind::dense;
  WindowIndex windows = {};  // of a convolution

  bool convolves() const { return kind != LayerKind::dense; }
  // Of the matrix of weights, and of the bias.
  int weight_rows() const { return by_kind(inputs, windows.depth(), windows.coarse); }
  int weight_columns() const { return by_kind(outputs, windows.coarse, windows.depth()); }
  int weight_ld() const { return convolves() ? padded_width(weight_columns()) : ld; }
  int biases() const { return by_kind(outputs, windows.coarse, windows.fine); }

 private:
  int by_kind(int dense, int down, int up) const {
    return kind == LayerKind::dense ? dense : kind == LayerKind::down ? down : up;
  }
};

inline constexpr int max_layers = 8;

struct Net {
  int depth = 0;
  Layer layer[max_layers] = {};
  Activation activation = Activation::relu;

  int inputs() const { return layer[0].inputs; }
  int outputs() const { return layer[depth - 1].outputs; }
  bool convolves() const {
    return std::any_of(layer, layer + depth, [](const Layer& l) { return l.convolves(); });
  }
};

// Whether a decoder's products may be in halves, which are as exact as tf32: residuals of other densities may be too
// large for them, and kernels in halves know no activation but ReLU, and no convolutions. Such a decoder has all
// biases.
inline bool suits_halves(const Net& net, Density density, Math math) {
  return math == Math::tf32 && density == Density::bernoulli && !net.convolves() &&
         (net.depth == 1 || net.activation == Activation::relu);
}

// What a network's layers hold for a batch, (rows, ld) each: `value` after the activation (of the last layer: before),
// `delta` d objective / da.
struct Tape {
  const float* input;
  int ld_input;
  float* value[max_layers];
  float* delta[max_layers];
  float* gradient = nullptr;  // of convolutions, laid out as the parameters: kernels of their own sum it
};

// Networks of one shape side by side: `nets` of a run, with the same input, and `runs`. Distances in floats; values and
// deltas of layer l are net_rows · ld apart.
struct Sides {
  int nets = 1, runs = 1;
  std::size_t net_parameters = 0, net_rows = 0, run = 0;  // a run's distance holds for everything of it

  Distances of_run() const { return {.a = run, .b = run, .c = run, .bias = run, .data = run}; }
};

}  // namespace hone::cuda
