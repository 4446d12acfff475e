#pragma once

#include <functional>
#include <vector>

#include "hone/engine/config.hpp"
#include "hone/engine/cuda/evaluate/batch_decoder.cuh"
#include "hone/engine/evaluation.hpp"
#include "hone/latent/model.hpp"

namespace hone::cuda {

// A run as an evaluation needs it.
struct TrainedRun {
  const TrainConfig& config;
  Math math;
  const Net &decoder, &encoder;  // encoder: the network of q's means
  std::size_t net_parameters;    // floats from the means' network to the deviations'
  const Model<float>& model;     // with the run's parameters
  const float* parameters;       // the same on the device
  std::uint64_t seed;
  double step_size;

  FixedDecoder fixed_decoder() const { return {decoder, parameters, config.model.density(), math}; }
};

// As Engine's functions of the same names.
std::vector<PointEvaluation> evaluate(const TrainedRun& run, const DataSet& data, const EvaluationConfig& config,
                                      const std::function<void(int)>& progress);
std::vector<AnnealedPoint> anneal(const TrainedRun& run, const DataSet& data, const AnnealingTask& task,
                                  const std::function<void(int)>& progress);

}  // namespace hone::cuda
