#pragma once

#include "hone/engine/cuda/refinement/refinement_plan.cuh"

namespace hone::cuda {

// Refinements with the decoder's weights in the registers of a cluster: the plan, if the decoder fits, and its kernel.
std::optional<RefinementPlan> plan_registers(const DecoderShape& decoder, int chains);
RefinementKernel register_kernel(const RefinementPlan& plan);

// Packs of 16 bytes for a decoder's weights, as halves in the order of the registers; 0: they do not fit.
std::size_t packed_size(const Net& net);

}  // namespace hone::cuda
