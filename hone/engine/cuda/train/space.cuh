#pragma once

#include "hone/base/ranks.hpp"
#include "hone/engine/config.hpp"
#include "hone/engine/cuda/refinement/hmc.cuh"

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

// An iteration's metrics, for the host to read when it reports.
struct MetricsRow {
  double elbo, vcd, acceptance;  // acceptance: sum over proposals
  int proposals, nonfinite, dropped, refined;
};

// The arrays of run 0; those of run r are r · stride floats further.
struct Space {
  std::size_t stride;
  int batch, latent, ld_latent, ld_pixels, data;
  RunState* state;
  const int* indices;   // (chunk + 1, batch): the data of the minibatches to come; row `chunk` is only a place to write
  MetricsRow* metrics;  // (chunk)
  float* parameters;
  float *first, *second;                             // the optimizer's moments
  int* alive;                                        // (batch): draws inside the support
  float *raw_mean, *raw_sd, *delta_mean, *delta_sd;  // the encoder's last layers, (batch, ld_latent)
  double *mean, *sd, *z0, *grad_p0;                  // (batch, D)
  double* log_p0;                                    // (batch)
  double* baseline[2];                               // (data), of the first and of the second term; null: none
  double* values;                                    // (4, batch): DatumValues of update/learn.cuh
  uint4* packed;  // the decoder's weights, packed for the refinement's kernel; 0 if there is none
  ChainArrays chains;
  int steps;  // of HMC

  // What is prepared before an iteration begins, perhaps while a kernel of the previous one still runs. It exists
  // twice, the second time `slot` floats further. Nothing else may be written that early.
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
  Space of_slot(int index) const {  // for the host
    Space space = *this;
    const auto move = [&](auto*&... pointers) { ((pointers = at(pointers, index * slot)), ...); };
    move(space.now, space.x, space.datum, space.following, space.constant, space.noise, space.meeting,
         space.drawn_momentum, space.drawn_log_uniform, space.drawn_length);
    space.chains.constant = space.constant;
    return space;
  }
  // For a rank that has some rows of the minibatch: arrays that are prepared for all rows begin at the first of these;
  // arrays that the rank computes hold these rows alone.
  Space of_rows(const ItemRange& rows) const {  // for the host
    Space space = *this;
    space.batch = space.chains.count = rows.count();
    space.x += static_cast<std::size_t>(rows.begin) * ld_pixels;
    space.noise += static_cast<std::size_t>(rows.begin) * latent;
    space.datum += rows.begin;
    space.following += rows.begin;
    space.constant += rows.begin;
    space.chains.constant = space.constant;
    return space;
  }
};

// What the objective needs beside a run's arrays.
struct ObjectiveSpec {
  ObjectiveTerms objective;
  double baseline_decay;
  bool analytic;
  std::uint32_t shared_until;
  Adapt adapt;
  StepSizeArrays sizes;
};

}  // namespace hone::cuda
