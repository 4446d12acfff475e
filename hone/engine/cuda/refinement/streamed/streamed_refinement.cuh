#pragma once

#include "hone/engine/cuda/refinement/refinement_plan.cuh"

namespace hone::cuda {

// Refinements by single blocks that stream the decoder's weights, packed by tiles: the plan, if the decoder fits.
std::optional<RefinementPlan> plan_streamed(const DecoderShape& decoder);
// Packs the weights anew.
void launch_pack_streamed(const Space& space, const Net& net, const RefinementPlan& plan, int runs,
                          cudaStream_t stream);

}  // namespace hone::cuda
