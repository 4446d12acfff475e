#pragma once

#include "hone/engine/cuda/train/space.cuh"

namespace hone::cuda {

// What an iteration does beside its products, its refinement and its update; one warp per datum.

// q's means and standard deviations from the encoder's answer, z0 with the noise that was prepared; the chains stand
// there.
void launch_draw(const Space& space, int runs, cudaStream_t stream);

// After the value and gradient at z0 are known: which draws are inside the support. Those that are not stand at 0.
void launch_settle(const Space& space, int runs, cudaStream_t stream);

// The objective's gradient in q's means and deviations, as the encoder's last deltas.
void launch_ascend(const Space& space, const ObjectiveSpec& spec, int runs, cudaStream_t stream);

// The refined draws as the decoder's input, for the model's gradient: 0 where a draw was lost.
void launch_refined_input(const Space& space, int runs, cudaStream_t stream);

// Fills a local control variate with what all had in common.
void launch_spread_baselines(const Space& space, int runs, cudaStream_t stream);

}  // namespace hone::cuda
