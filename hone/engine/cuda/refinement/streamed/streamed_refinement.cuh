#pragma once

#include "hone/engine/cuda/refinement/refinement_plan.cuh"

namespace hone::cuda {

// Refinements by blocks alone, past which the decoder's weights stream: sizes of a plan, if the decoder fits, and what
// executes it.
std::optional<RefinementPlan> plan_streamed(const DecoderShape& decoder);
RefinementKernel streamed_kernel(const RefinementPlan& plan);

// Packs of 16 bytes that a decoder's weights need, by tiles; 0: they do not fit.
std::size_t streamed_size(const Net& net);
void launch_pack_streamed(const Space& space, const Net& net, int runs, cudaStream_t stream);

}  // namespace hone::cuda
