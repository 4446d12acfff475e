#pragma once

#include <vector>

#include "hone/engine/cuda/encoder/encoder_shape.cuh"
#include "hone/engine/cuda/train/space.cuh"

namespace hone::cuda {

// The training data on the device: bits where they are binary, else floats (centred where the model wants it).
struct DataView {
  const std::uint64_t* bits;
  const float* values;
  const double* constant;  // − Σ log x! of a Poisson; null: 0
  int words, pixels;
};

// What an iteration needs before it begins: x, datum and constant of its minibatch, noise of q's draws; for the
// refinement's kernel the random numbers of `steps` HMC steps.
struct Preparation {
  DataView data;
  double rate_decay;
  std::uint32_t decay_every;
  Ramp warmup;
  const std::uint64_t* seed;  // (runs)
  int steps;
  HmcShape shape;
};

// A block's share of the gradient of one tensor and of its update, and of what follows from it: a tile of weights; a
// strip of the encoder's first layer where data are bits; or some biases (rows = 0).
struct UpdateTask {
  const float* x;   // (batch, ldx): what the layer read; null: the minibatch
  const float* dy;  // (batch, lddy): its deltas
  std::size_t parameter;
  int ldx = 0, lddy, ld, rows, cols, row0 = 0, col0 = 0;
  double rate;
  int packed_layer = -1;  // of the decoder's, where weights are packed
  int words = 0;          // of a strip, of 64 bits, from row0 on
  // of a strip: the product with the next minibatch, (batch, ld); where ranks share the minibatch (share/sums.cuh):
  // what they have added up of the gradient
  float* sums = nullptr;
  const float* gradient = nullptr;  // laid out as the tensor, if another kernel sums it
};
struct UpdateSpec {
  const UpdateTask* tasks;
  int count, strips;  // strips come first
  OptimizerKind optimizer;
  Math math;
  ObjectiveSpec objective;
  Preparation preparation;
  bool one_layer;  // the decoder, where its weights are packed
};
struct LayerRates {
  double weights, biases;
};
// Those of a layer: of its weights, by tiles or, if there are any, by strips; and of its biases.
std::vector<UpdateTask> update_tasks(const Net& net, const Tape& tape, int layer, const LayerRates& rates,
                                     const FirstLayerSums& strips = {});

// The first of some iterations is prepared: in `space`, after the run's last one.
void launch_prepare(const Space& space, const UpdateSpec& spec, int runs, cudaStream_t stream);
// All tensors, beside them what the objective learns of the iteration (learn.cuh), and the next one is prepared in
// `next` (null: not).
void launch_update(const Space& space, const Space* next, const UpdateSpec& spec, int runs, cudaStream_t stream);

}  // namespace hone::cuda
