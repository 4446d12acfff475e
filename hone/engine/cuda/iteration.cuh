#pragma once

#include "hone/engine/config.hpp"
#include "hone/engine/cuda/encoder_shape.cuh"
#include "hone/engine/cuda/refine.cuh"

namespace hone::cuda {

// What a run carries from iteration to iteration.
struct RunState {
  std::uint32_t next;         // the one to come
  std::uint32_t chunk_first;  // the first of those whose minibatches lie on the device
  std::uint32_t bad;          // the first iteration after which a parameter was not finite; 0: none
  double step_size;
  double shared[2];  // control variates of the two terms while they are one for all data
};

// What an iteration knows of itself.
struct IterationState {
  std::uint32_t iteration;
  double rate_factor;
  double adam[2];
};

// An iteration's figures, for the host to read when it reports.
struct MetricsRow {
  double elbo, vcd, acceptance;  // acceptance: sum over proposals
  int proposals, nonfinite, dropped, refined;
};

// The training data on the device: bits where they are binary, else floats (centred where the model wants it).
struct DataView {
  const std::uint64_t* bits;
  const float* values;
  const double* constant;  // − Σ log x! of a Poisson; null: 0
  int words, pixels;
};

// A run's arrays, of run 0; run r's lie r · stride floats further.
struct Space {
  std::size_t stride;
  int batch, latent, ld_latent, ld_pixels, data;
  RunState* state;
  const int* indices;   // (chunk + 1, batch): the data of the minibatches to come; the last is no such
  MetricsRow* metrics;  // (chunk)
  float* parameters;
  float *first, *second;                             // the optimizer's moments
  int* alive;                                        // (batch): draws inside the support
  float *raw_mean, *raw_sd, *delta_mean, *delta_sd;  // the encoder's last layers, (batch, ld_latent)
  double *mean, *sd, *z0, *grad_p0;                  // (batch, D)
  double* log_p0;                                    // (batch)
  double* baseline[2];                               // (data), of the first and of the second term; null: none
  double* figures;                                   // (4, batch): what the objective makes of data
  uint4* packed;  // the decoder's weights as a refinement's kernel wants them; 0 where there is none
  ChainArrays chains;
  int steps;  // of HMC

  // What is prepared of an iteration before it begins, perhaps while a kernel of the one before it still runs: all this
  // is there twice, the second time `slot` floats further, and nothing else may be written so early.
  std::size_t slot;
  IterationState* now;
  float* x;                                    // (batch, ld_pixels)
  int *datum, *following;                      // (batch): of this minibatch, and of the one after it
  double* constant;                            // (batch)
  double* noise;                               // (batch, D), of q's draws
  unsigned long long* meeting;                 // (steps): where clusters meet after an HMC step
  double *drawn_momentum, *drawn_log_uniform;  // (steps, batch, D), (steps, batch)
  int* drawn_length;                           // (steps, batch)

  template <class T>
  __device__ T* of(T* pointer, int run) const {
    return at(pointer, run * stride);
  }
  Space of_slot(int index) const;  // for the host
};

// The first layer of the encoder's networks where data are bits: with a minibatch it is multiplied as soon as its
// weights are known, by those who make them, in parts of k. Who needs its values adds them up.
struct FirstLayerSums {
  static constexpr int words = 4;  // of 64 bits, of a part at most
  int parts = 0;                   // 0: its values are there
  float* sums = nullptr;           // (part, network, batch, ld)
};

// The encoder's networks for means and for deviations, of one shape: the second's parameters lie so many floats
// further, its rows of the tape behind the first's.
struct EncoderSpec {
  Net net;
  std::size_t net_parameters;
  Tape tape;
  FirstLayerSums first;
};

struct RateSpec {
  double decay;
  std::uint32_t every;
};
// What an iteration needs before it begins: x, datum and constant of its minibatch, noise of q's draws; for the
// refinement's kernel the random numbers of `steps` HMC steps.
struct Preparation {
  DataView data;
  RateSpec rates;
  const std::uint64_t* seed;  // (runs)
  int steps;
  HmcShape shape;
};

// q's means and standard deviations from the encoder's answer, z0 with the noise that was prepared; the chains stand
// there.
void launch_draw(const Space& space, int runs, cudaStream_t stream);

// After the value and gradient at z0 are known: which draws are inside the support. Those that are not stand at 0.
void launch_settle(const Space& space, int runs, cudaStream_t stream);

struct ObjectiveSpec {
  ObjectiveConfig objective;
  bool analytic;
  std::uint32_t shared_until;
  Adapt adapt;
  StepSizeArrays sizes;
};
// The objective's gradient in q's means and deviations, as the encoder's last deltas.
void launch_ascend(const Space& space, const ObjectiveSpec& spec, int runs, cudaStream_t stream);

// Whether the encoder's layers above the first have code of their own: where they are one or two, on a device with
// clusters. Else they go by products, and launch_draw and launch_ascend.
bool takes_encoder(const Net& net, int latent, Math math);
// From the first layer's sums, or values, to the draws: as the layers above and launch_draw.
void launch_encode(const Space& space, const EncoderSpec& encoder, Math math, int runs, cudaStream_t stream);
// As launch_ascend, and the deltas of the hidden layers.
void launch_ascend_back(const Space& space, const ObjectiveSpec& objective, const EncoderSpec& encoder, Math math,
                        int runs, cudaStream_t stream);

// The refined draws as the decoder's input, for the model's gradient: 0 where a draw was lost.
void launch_refined_input(const Space& space, int runs, cudaStream_t stream);

// Fills a local control variate with what all had in common.
void launch_spread_baselines(const Space& space, int runs, cudaStream_t stream);

// A block's share of the gradient of one tensor and of its update, and of what follows from it: a tile of weights; a
// strip of the encoder's first layer where data are bits; or some biases (rows = 0).
struct UpdateTask {
  const float* x;   // (batch, ldx): what the layer read; null: the minibatch
  const float* dy;  // (batch, lddy): its deltas
  std::size_t parameter;
  int ldx, lddy, ld, rows, cols, row0, col0;
  double rate;
  int packed_layer = -1;  // of the decoder's, where weights are packed
  int words = 0;          // of a strip, of 64 bits, from row0 on
  float* sums = nullptr;  // of a strip: the product with the next minibatch, (batch, ld)
};
enum class Packing { none, one_layer, hidden_layers };
struct UpdateSpec {
  const UpdateTask* tasks;
  int count, strips;  // strips come first
  OptimizerKind optimizer;
  Math math;
  ObjectiveSpec objective;
  Preparation preparation;
  Packing packing;
};
// Those of a layer: of its weights, if wanted, and of its biases.
std::vector<UpdateTask> update_tasks(const Net& net, const Tape& tape, int layer, double rate, bool weights);
// Of the weights of network `index`'s first layer, as strips.
std::vector<UpdateTask> strip_tasks(const Net& net, const Tape& tape, double rate, const FirstLayerSums& first,
                                    int index, int batch);

// The first of some iterations is prepared: in `space`, after the run's last one.
void launch_prepare(const Space& space, const UpdateSpec& spec, int runs, cudaStream_t stream);
// All tensors, beside them what the objective learns of the iteration (learn.cuh), and the next one is prepared in
// `next` (null: not).
void launch_update(const Space& space, const Space* next, const UpdateSpec& spec, int runs, cudaStream_t stream);

}  // namespace hone::cuda
