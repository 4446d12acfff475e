#pragma once

#include "hone/engine/cuda/train/run_memory.cuh"
#include "hone/engine/train_state.hpp"

namespace hone::cuda {

// A run's state between the device and the host; `model` names the parameters and takes their values on the way.

void initialize(const TrainPlan& plan, RunMemory& memory, Model<float>& model, int run, std::uint64_t seed);

void download_parameters(const RunMemory& memory, int run, Model<float>& model);

TrainState save(const TrainPlan& plan, const RunMemory& memory, Model<float>& model, int run, std::uint32_t iteration,
                double step_size);
void restore(RunMemory& memory, Model<float>& model, int run, const TrainState& state);

}  // namespace hone::cuda
