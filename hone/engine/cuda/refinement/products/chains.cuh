#pragma once

#include <functional>

#include "hone/engine/cuda/refinement/hmc.cuh"

namespace hone::cuda {

// HMC by launches, one warp per chain.

// z → input; 0 for chains that are not `alive` (null: all are)
void launch_place(const ChainArrays& chains, const int* alive, int runs, cudaStream_t stream);
// Value and gradient at z, from what the decoder returned for `input`; sums start at 0.
void launch_begin(const ChainArrays& chains, int runs, cudaStream_t stream);

// One HMC step of every chain. gradient(value) computes ∇ log p(x | z) at `input` and, if wanted, log p(x | z).
struct HmcStep {
  ChainNumbers numbers;
  StepSizeArrays sizes;
  HmcShape shape;
  std::uint32_t index;  // of its random numbers
  bool adapts;
};
void launch_step(const ChainArrays& chains, const HmcStep& step, int runs, cudaStream_t stream,
                 const std::function<void(bool)>& gradient);
// Step sizes follow the outcomes of all chains: what ends a step that adapts.
void launch_adapt(const ChainArrays& chains, const StepSizeArrays& sizes, int runs, cudaStream_t stream);

}  // namespace hone::cuda
