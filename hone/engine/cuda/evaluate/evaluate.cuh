#pragma once

#include <functional>
#include <vector>

#include "hone/engine/cuda/evaluate/chain_walk.cuh"
#include "hone/engine/cuda/train/plan.cuh"
#include "hone/engine/evaluation.hpp"

namespace hone::cuda {

// A run as an evaluation needs it.
struct TrainedRun {
  const TrainPlan& plan;
  const Model<float>& model;  // with the run's parameters
  const float* parameters;    // the same on the device
  std::uint64_t seed;
  double step_size;

  FixedDecoder decoder() const {
    const ModelConfig& model = plan.config.model;
    return {plan.decoder, parameters, model.density(), plan.math, model.categories};
  }
};

// As Engine's functions of the same names.
std::vector<PointEvaluation> evaluate(const TrainedRun& run, const DataSet& data, const EvaluationConfig& config,
                                      const std::function<void(int)>& progress);
std::vector<AnnealedPoint> anneal(const TrainedRun& run, const DataSet& data, const AnnealingTask& task,
                                  const std::function<void(int)>& progress);

}  // namespace hone::cuda
