#pragma once

#include <optional>
#include <string>

#include "hone/engine/config.hpp"
#include "hone/engine/cuda/refinement/refinement_plan.cuh"
#include "hone/engine/cuda/update/update.cuh"
#include "hone/latent/model.hpp"

namespace hone::cuda {

struct PathOptions {
  PathKind kind = PathKind::chosen;
  int chains = 0;  // of a cluster with weights in registers: 8, 16; 0: chosen
};

// The model's tensors as the device holds them: `padded_width` floats from a row to the next.
struct PaddedTensor : Tensor {
  std::size_t begin;
};
struct PaddedTensors {
  std::vector<PaddedTensor> all = {};
  std::size_t size = 0;

  explicit PaddedTensors(std::span<const Tensor> tensors);
  const PaddedTensor* find(const std::string& name) const;  // null: there is none
};

// How runs of one configuration are executed: which kernels, and how their work is shared out. It holds no addresses
// and never changes.
struct TrainPlan {
  TrainConfig config;
  int runs, data, pixels;  // data: how many there are to train on
  PaddedTensors padded;
  Math math;
  Net decoder, encoder;        // encoder: the network of q's means; that of the deviations has the same shape
  std::size_t net_parameters;  // floats from the means' network to the deviations'
  std::optional<RefinementPlan> refinement;  // none: product by product
  int wave;                                  // runs whose clusters are resident at a time
  Surroundings around;
  int first_parts;     // of FirstLayerSums
  double input_scale;  // Model::input_scale
  std::string words;   // how an iteration is executed

  bool refines() const { return config.objective->refines(); }
  HmcShape hmc() const { return {config.kernel->as_hmc()->leapfrog, config.kernel->as_hmc()->jitter}; }
  bool halves() const { return suits_halves(decoder, config.model.density(), math); }  // of the decoder's products
};

// Throws InputError if a network has too many layers.
TrainPlan make_train_plan(const TrainConfig& config, const DataSet& train, const Model<float>& model, int runs,
                          const PathOptions& options);

}  // namespace hone::cuda
