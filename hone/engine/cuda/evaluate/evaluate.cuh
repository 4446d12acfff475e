#pragma once

#include <functional>
#include <vector>

#include "hone/engine/cuda/evaluate/chain_walk.cuh"
#include "hone/engine/cuda/train/run_memory.cuh"
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

// f(points, begin, how many of them are wanted) for parts of the first `wanted` data; whole groups, except at the end.
struct PartSize {
  int most, group;  // most: a multiple of the group
};
template <class F>
void for_parts(const TrainedRun& run, const DataSet& data, int wanted, const PartSize& part, F f) {
  for (int begin = 0; begin < wanted; begin += part.most) {
    const int some = std::min(part.most, wanted - begin);
    const int points = std::min(data.size() - begin, round_up(some, part.group));
    f(load_points(run.model, data, begin, points, padded_width(data.dimension())), begin, some);
  }
}

// As Engine's functions of the same names.
std::vector<PointEvaluation> evaluate(const TrainedRun& run, const DataSet& data, const EvaluationConfig& config,
                                      const std::function<void(int)>& progress);
std::vector<AnnealedPoint> anneal(const TrainedRun& run, const DataSet& data, const AnnealingTask& task,
                                  const std::function<void(int)>& progress);

}  // namespace hone::cuda
