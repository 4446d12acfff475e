#pragma once

#include "hone/engine/cuda/refinement/refinement_plan.cuh"

namespace hone::cuda {

// Refinements by single blocks that stream the decoder's weights: the plan, if the decoder fits, and its kernel.
std::optional<RefinementPlan> plan_streamed(const DecoderShape& decoder);
RefinementKernel streamed_kernel(const RefinementPlan& plan);

// Packs of 16 bytes for a decoder's weights, by tiles; 0: they do not fit.
std::size_t streamed_size(const Net& net);
void launch_pack_streamed(const Space& space, const Net& net, int runs, cudaStream_t stream);

}  // namespace hone::cuda
