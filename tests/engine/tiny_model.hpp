#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "hone/base/scalar.hpp"
#include "tests/engine/support.hpp"

namespace hone::test {

// A tiny model with one latent dimension, made by hand, and its evidence by the trapezoidal rule.
class TinyModel {
 public:
  explicit TinyModel(ModelKind kind) : poisson_(kind == ModelKind::poisson_mf) {
    config_.model = {kind, 1, poisson_ ? std::vector<int>{} : std::vector{3}, {2}, Activation::tanh};
    config_.model.initial = InitialWeights::paper;
    config_.batch = 1;
    config_.precision = Precision::float64;
    config_.refine.step_size = 0.3;
  }

  std::unique_ptr<Engine> engine(const DataSet& data, int threads = 1) {
    EngineOptions options;
    options.threads = threads;
    auto engine = make_cpu_engine(config_, data, std::move(options));
    TrainState state = engine->save();
    for (NamedArray& array : state.arrays)
      if (is_parameter(array))
        for (double k = 1; double& x : std::get<std::vector<double>>(array.values))
          x = array.name.starts_with("decoder.") ? 1.5 * std::sin(3 * k++) : 0.3 * std::cos(k++);
    engine->restore(state);
    state_ = engine->save();
    return engine;
  }

  // p(x), after engine()
  double evidence(const std::vector<double>& x) {
    double sum = 0;
    constexpr double width = 1e-3;
    for (double z = -12; z <= 12; z += width) sum += width * std::exp(log_joint(x, z));
    return sum;
  }

 private:
  double log_joint(const std::vector<double>& x, double z) {
    std::vector<double> hidden = {z};
    if (!poisson_) {
      hidden.resize(3);
      for (int j = 0; j < 3; ++j) hidden[j] = std::tanh(array("weight[0]")[j] * z + array("bias[0]")[j]);
    }
    const std::string layer = poisson_ ? "[0]" : "[1]";
    double value = -0.5 * (log_two_pi + z * z);
    for (std::size_t p = 0; p < x.size(); ++p) {
      double a = array("bias" + layer)[p];
      for (std::size_t j = 0; j < hidden.size(); ++j) a += array("weight" + layer)[j * x.size() + p] * hidden[j];
      const double rate = std::log(std::exp(1e-4) + std::exp(a));
      value += poisson_ ? x[p] * std::log(rate) - rate - std::lgamma(x[p] + 1) : x[p] * a - std::log1p(std::exp(a));
    }
    return value;
  }
  const std::vector<double>& array(const std::string& name) { return array_of<double>(state_, "decoder." + name); }

  bool poisson_;
  TrainConfig config_;
  TrainState state_;
};

inline std::vector<double> repeated(const std::vector<double>& x, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.insert(values.end(), x.begin(), x.end());
  return values;
}

}  // namespace hone::test
