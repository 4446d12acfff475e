#pragma once

#include "hone/engine/cuda/refinement/hmc.cuh"

namespace hone::cuda {

// HMC by launches, one warp per chain: momenta and the first drift; after a gradient at `input`, the next kick and
// drift; after the last one the Metropolis step.
void launch_place(const ChainArrays& chains, int runs, cudaStream_t stream);  // z → input
void launch_begin(const ChainArrays& chains, int runs, cudaStream_t stream);  // value and gradient at z
void launch_start(const ChainArrays& chains, const Numbers& numbers, const StepSizeArrays& sizes, const HmcShape& shape,
                  std::uint32_t step, int runs, cudaStream_t stream);
void launch_leap(const ChainArrays& chains, const StepSizeArrays& sizes, int leap, int runs, cudaStream_t stream);
void launch_accept(const ChainArrays& chains, const Numbers& numbers, const StepSizeArrays& sizes, std::uint32_t step,
                   bool adapts, int runs, cudaStream_t stream);

// One HMC step of every chain. gradient(value) makes ∇ log p(x | z) at `input` and, if wanted, log p(x | z).
struct HmcStep {
  Numbers numbers;
  StepSizeArrays sizes;
  HmcShape shape;
  std::uint32_t index;  // of its random numbers
  bool adapts;
};
template <class Gradient>
void launch_step(const ChainArrays& chains, const HmcStep& step, int runs, cudaStream_t stream, Gradient gradient) {
  launch_start(chains, step.numbers, step.sizes, step.shape, step.index, runs, stream);
  for (int leap = 1; leap <= step.shape.leapfrog + step.shape.jitter; ++leap) {
    gradient(leap >= step.shape.leapfrog - step.shape.jitter);
    launch_leap(chains, step.sizes, leap, runs, stream);
  }
  launch_accept(chains, step.numbers, step.sizes, step.index, step.adapts, runs, stream);
}

}  // namespace hone::cuda
