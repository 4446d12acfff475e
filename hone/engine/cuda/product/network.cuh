#pragma once

#include "hone/engine/cuda/product/product.cuh"

namespace hone::cuda {

constexpr int padded_width(int units) { return round_up(units, 4); }  // of a row, in floats: copies are of 16 bytes

// A layer's place in the parameters (floats). Weights are (inputs, ld), one row per input unit, ld ≥ outputs.
struct Layer {
  int inputs, outputs, ld;
  std::size_t weight, bias;
  bool has_bias;
};

inline constexpr int max_layers = 8;

struct Net {
  int depth = 0;
  Layer layer[max_layers] = {};
  Activation activation = Activation::relu;

  int inputs() const { return layer[0].inputs; }
  int outputs() const { return layer[depth - 1].outputs; }
};

// Whether a decoder's products may be in halves, which are as exact as tf32: residuals of other densities may be too
// large for them, and kernels in halves know no activation but ReLU. Such a decoder has all biases.
inline bool suits_halves(const Net& net, Density density, Math math) {
  return math == Math::tf32 && density == Density::bernoulli && (net.depth == 1 || net.activation == Activation::relu);
}

// What a network's layers hold for a batch, (rows, ld) each: `value` after the activation (of the last layer: before),
// `delta` d objective / da.
struct Tape {
  const float* input;
  int ld_input;
  float* value[max_layers];
  float* delta[max_layers];
};

// Networks of one shape side by side: `nets` of a run, with the same input, and `runs`. Distances in floats; values and
// deltas of layer l are net_rows · ld apart.
struct Sides {
  int nets = 1, runs = 1;
  std::size_t net_parameters = 0, net_rows = 0, run = 0;  // a run's distance holds for everything of it

  Distances of_run() const { return {run, run, run, run, run}; }
};

}  // namespace hone::cuda
