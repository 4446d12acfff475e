#pragma once

#include "hone/engine/cuda/update/update.cuh"
#include "hone/mcmc/step_size.hpp"
#include "hone/optim/update.hpp"

namespace hone::cuda {

// What an iteration needs before it begins and no parameter decides; `space` is that iteration's.

// The data of its minibatch, (batch).
__device__ inline const int* minibatch_of(const Space& space, int run, std::uint32_t iteration) {
  return space.of(space.indices, run) +
         static_cast<std::size_t>(iteration - space.of(space.state, run)->chunk_first) * space.batch;
}

__device__ inline void gather(const Space& space, const Preparation& p, int run, std::uint32_t iteration, int column) {
  const DataView& data = p.data;
  const int datum = minibatch_of(space, run, iteration)[column];
  float* x = space.of(space.x, run) + static_cast<std::size_t>(column) * space.ld_pixels;
#pragma unroll 1
  for (int i = threadIdx.x; i < data.pixels; i += blockDim.x)
    x[i] = data.bits
               ? static_cast<float>(data.bits[static_cast<std::size_t>(datum) * data.words + i / 64] >> (i % 64) & 1)
               : data.values[static_cast<std::size_t>(datum) * data.pixels + i];
  if (threadIdx.x != 0) return;
  space.of(space.datum, run)[column] = datum;
  space.of(space.following, run)[column] = minibatch_of(space, run, iteration + 1)[column];
  space.of(space.constant, run)[column] = data.constant ? data.constant[datum] : 0;
}

__device__ inline void begin_iteration(const Space& space, const Preparation& p, int run, std::uint32_t iteration) {
  IterationState& now = *space.of(space.now, run);
#pragma unroll 1
  for (int step = threadIdx.x; step < space.steps; step += blockDim.x) space.of(space.meeting, run)[step] = 0;
  if (threadIdx.x == 0) {
    now.iteration = iteration;
    now.rate_factor = p.warmup.at(iteration) * decay_factor(p.rate_decay, p.decay_every, iteration);
  } else if (threadIdx.x == 32) {  // another warp: powers take long
    const AdamCorrection correction(iteration);
    now.adam[0] = correction.first;
    now.adam[1] = correction.second;
  }
}

// A warp's share of the random numbers: of one datum and step, or the noise of q's draw (step −1). Written so that the
// code of a random number is there once: fetching it takes longer than running it.
__device__ inline void draw_numbers(const Space& space, const Preparation& p, int run, std::uint32_t iteration,
                                    int step, int column) {
  const std::size_t place = static_cast<std::size_t>(max(step, 0)) * space.batch + column;
  double* normals = space.of(step < 0 ? space.noise : space.drawn_momentum, run) + place * space.latent;
  const int pairs = (space.latent + 1) / 2;
  Stream stream{Purpose::draw, iteration, static_cast<std::uint32_t>(column), static_cast<std::uint32_t>(max(step, 0))};
#pragma unroll 1
  for (int task = this_lane(); task < (step < 0 ? pairs : pairs + 2); task += 32) {
    const bool normal = task < pairs;
    if (step >= 0) stream.purpose = normal ? Purpose::momentum : task == pairs ? Purpose::accept : Purpose::leapfrog;
    const auto pair = random_pair(p.seed[run], stream, normal ? static_cast<std::uint32_t>(task) : 0, normal);
    if (normal) {
      normals[2 * task] = pair.first;
      if (2 * task + 1 < space.latent) normals[2 * task + 1] = pair.second;
    } else if (task == pairs) {
      space.of(space.drawn_log_uniform, run)[place] = log(pair.first);
    } else {
      space.of(space.drawn_length, run)[place] = p.shape.length(pair.first);
    }
  }
}

// All of it for one datum, by a block.
__device__ inline void prepare_datum(const Space& space, const Preparation& p, int run, std::uint32_t iteration,
                                     int column) {
  if (column == 0) begin_iteration(space, p, run, iteration);
  gather(space, p, run, iteration, column);
#pragma unroll 1
  for (int step = this_warp() - 1; step < p.steps; step += static_cast<int>(blockDim.x) / 32)
    draw_numbers(space, p, run, iteration, step, column);
}

}  // namespace hone::cuda
