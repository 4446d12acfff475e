#pragma once

#include "hone/engine/cuda/evaluate/evaluate.cuh"

namespace hone::cuda {

// As Engine's function of the same name.
std::vector<AnnealedPoint> anneal(const TrainedRun& run, const DataSet& data, const AnnealingTask& task,
                                  const std::function<void(int)>& progress);

}  // namespace hone::cuda
