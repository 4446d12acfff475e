#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hone/engine/train_state.hpp"
#include "hone/latent/parameters.hpp"
#include "hone/optim/optimizer.hpp"

namespace hone {

// A run's clone of the optimizer that a caller brought. It computes in double, whatever the networks' numbers are.
template <class Real>
class OwnOptimizer {
 public:
  explicit OwnOptimizer(const ModelOptimizer& given) : optimizer_(given.clone()) {}

  struct Step {
    std::span<const Tensor> tensors;
    std::function<double(const Tensor&)> rate;
    std::span<const Real> gradient;
    std::span<Real> theta;
    std::uint32_t iteration;
  };
  bool step(const Step& step);  // returns whether all parameters are finite afterwards

  void save(TrainState& state) const;     // appends its arrays
  void restore(const TrainState& state);  // throws InputError if the state is another optimizer's

 private:
  std::unique_ptr<ModelOptimizer> optimizer_;
  std::vector<double> gradient_, theta_;
  std::vector<TensorStep> steps_;
};

}  // namespace hone
