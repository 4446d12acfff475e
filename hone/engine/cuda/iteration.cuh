#pragma once

#include "hone/engine/config.hpp"
#include "hone/engine/cuda/encoder_shape.cuh"
#include "hone/engine/cuda/refine.cuh"

namespace hone::cuda {

// What a run carries from kernel to kernel and from iteration to iteration.
struct RunState {
  std::uint32_t iteration;    // the one under way
  std::uint32_t next;         // the one to come
  std::uint32_t chunk_first;  // the first of those whose minibatches lie on the device
  std::uint32_t bad;          // the first iteration after which a parameter was not finite; 0: none
  double step_size;
  double shared[2];    // control variates of the two terms while they are one for all data
  double rate_factor;  // of this iteration
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
  const int* indices;   // (chunk, batch): the data of the minibatches to come
  MetricsRow* metrics;  // (chunk)
  float* parameters;
  float *first, *second;                              // the optimizer's moments
  float* x;                                           // (batch, ld_pixels)
  int* datum;                                         // (batch)
  double* constant;                                   // (batch)
  int* alive;                                         // (batch): draws inside the support
  float *raw_mean, *raw_sd, *delta_mean, *delta_sd;   // the encoder's last layers, (batch, ld_latent)
  double *mean, *sd, *noise, *z0, *grad_p0;           // (batch, D)
  double* log_p0;                                     // (batch)
  double* baseline[2];                                // (data), of the first and of the second term; null: none
  double* figures;                                    // (4, batch): what the objective makes of data
  unsigned long long* meeting;                        // (steps): where clusters meet after an HMC step
  int steps;
  double *drawn_momentum, *drawn_log_uniform;  // (steps, batch, D), (steps, batch): of the HMC steps to come
  int* drawn_length;                           // (steps, batch)
  uint4* packed;                               // the decoder's weights as a refinement's kernel wants them
  ChainArrays chains;

  template <class T>
  __device__ T* of(T* pointer, int run) const {
    return at(pointer, run * stride);
  }
};

// The encoder's networks for means and for deviations, of one shape: the second's parameters lie so many floats further,
// its rows of the tape behind the first's.
struct EncoderSpec {
  Net net;
  std::size_t net_parameters;
  Tape tape;
};
// The data of the minibatch to come, (batch).
__device__ inline const int* next_minibatch(const Space& space, int run) {
  const RunState& state = *space.of(space.state, run);
  return space.of(space.indices, run) + static_cast<std::size_t>(state.next - state.chunk_first) * space.batch;
}

struct RateSpec {
  double decay;
  std::uint32_t every;
};
// The start of the next iteration, which becomes the one under way: x, datum and constant of its minibatch, noise of
// q's draws; for the refinement's kernel the random numbers of `steps` HMC steps and, where it wants them, the packed
// weights; the encoder's first layer, where `first` has blocks.
struct Preparation {
  DataView data;
  RateSpec rates;
  const std::uint64_t* seed;  // (runs)
  int steps;
  HmcShape shape;
  bool packs;
  Net decoder;
  EncoderSpec encoder;
  FirstLayerShape first;
  Math math;
};
void launch_prepare(const Space& space, const Preparation& preparation, int runs, cudaStream_t stream);

// q's means and standard deviations from the encoder's answer, z0 with the noise of `launch_prepare`; the chains stand
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

// What of the encoder has code of its own: the first layer, by `launch_prepare`, where data are bits; and those above
// where they are one or two, on a device with clusters. The rest goes by Networks, and launch_draw and launch_ascend.
struct EncoderPlan {
  bool first = false, above = false;
};
EncoderPlan plan_encoder(const Net& net, int latent, bool bits, Math math);
// From the first layer's values to the draws, as the layers above and launch_draw.
void launch_encode(const Space& space, const EncoderSpec& encoder, Math math, int runs, cudaStream_t stream);
// As launch_ascend, and the deltas of the hidden layers.
void launch_ascend_back(const Space& space, const ObjectiveSpec& objective, const EncoderSpec& encoder, Math math,
                        int runs, cudaStream_t stream);

// The refined draws as the decoder's input, for the model's gradient: 0 where a draw was lost.
void launch_refined_input(const Space& space, int runs, cudaStream_t stream);

// Fills a local control variate with what all had in common.
void launch_spread_baselines(const Space& space, int runs, cudaStream_t stream);

// A block's share of the gradient of one tensor and of its update: a tile of weights, or some biases (rows = 0).
struct UpdateTask {
  const float* x;   // (batch, ldx): what the layer read
  const float* dy;  // (batch, lddy): its deltas
  std::size_t parameter;
  int ldx, lddy, ld, rows, cols, row0, col0;
  double rate;
};
struct UpdateSpec {
  const UpdateTask* tasks;
  int count;
  OptimizerKind optimizer;
  Math math;
  ObjectiveSpec objective;
};
std::vector<UpdateTask> update_tasks(const Net& net, const Tape& tape, double rate);
// All tensors, and beside them what the objective learns of the iteration (learn.cuh).
void launch_update(const Space& space, const UpdateSpec& spec, int runs, cudaStream_t stream);

}  // namespace hone::cuda
