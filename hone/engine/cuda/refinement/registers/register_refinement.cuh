#pragma once

#include "hone/engine/cuda/refinement/refinement_plan.cuh"

namespace hone::cuda {

// Refinements with the decoder's weights in the registers of a cluster: sizes of a plan, if the decoder fits, and what
// executes it.
std::optional<RefinementPlan> plan_registers(const DecoderShape& decoder, int chains);
RefinementKernel register_kernel(const RefinementPlan& plan);

// Packs of 16 bytes that a decoder's weights need as halves in the order of the registers; 0: they have no room there.
std::size_t packed_size(const Net& net);

}  // namespace hone::cuda
