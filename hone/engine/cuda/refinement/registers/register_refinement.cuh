#pragma once

#include "hone/engine/cuda/refinement/refinement_plan.cuh"

namespace hone::cuda {

// Refinements with the decoder's weights in the registers of a cluster, packed as halves in their order: the plan, if
// the decoder fits.
std::optional<RefinementPlan> plan_registers(const DecoderShape& decoder, int chains);

}  // namespace hone::cuda
