#include "hone/engine/cpu/own_optimizer.hpp"

#include <cmath>

#include "hone/engine/state_arrays.hpp"

namespace hone {
namespace {

std::string array_name(const ModelOptimizer& optimizer, const std::string& name) {
  return "optimizer." + optimizer.name() + "." + name;
}

}  // namespace

template <class Real>
bool OwnOptimizer<Real>::step(const Step& step) {
  gradient_.assign(step.gradient.begin(), step.gradient.end());
  theta_.assign(step.theta.begin(), step.theta.end());
  steps_.clear();
  for (const Tensor& tensor : step.tensors)
    steps_.push_back({.name = tensor.name,
                      .rows = tensor.rows,
                      .cols = tensor.cols,
                      .rate = step.rate(tensor),
                      .gradient = std::span(gradient_).subspan(tensor.offset, tensor.size()),
                      .theta = std::span(theta_).subspan(tensor.offset, tensor.size())});
  optimizer_->step(steps_, step.iteration);
  bool finite = true;
  for (std::size_t i = 0; i < theta_.size(); ++i) {
    step.theta[i] = static_cast<Real>(theta_[i]);
    finite = finite && std::isfinite(step.theta[i]);
  }
  return finite;
}

template <class Real>
void OwnOptimizer<Real>::save(TrainState& state) const {
  optimizer_->visit_state([&](const std::string& name, std::vector<double>& values) {
    add_array(state, array_name(*optimizer_, name), values);
  });
}

template <class Real>
void OwnOptimizer<Real>::restore(const TrainState& state) {
  optimizer_->visit_state([&](const std::string& name, std::vector<double>& values) {
    take_array(state, array_name(*optimizer_, name), values);
  });
}

template class OwnOptimizer<float>;
template class OwnOptimizer<double>;

}  // namespace hone
