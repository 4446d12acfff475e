#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "hone/engine/cuda/cuda_engine.hpp"
#include "hone/engine/cuda/runs.cuh"

namespace hone::test {

// Tests that need a device are skipped where there is none.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const CudaSupport support = cuda_support(); !support.missing.empty())
      GTEST_SKIP() << "skipped: no CUDA device (" << support.missing << ")";
  }
  static bool has_clusters() { return cuda_support().devices.front().major >= 9; }
};

inline DataSet made_up_data(ModelKind model, int points, int pixels) {
  std::vector<double> values(static_cast<std::size_t>(points) * static_cast<std::size_t>(pixels));
  PhiloxSource(2).uniforms({Purpose::synthesize}, values);
  for (double& x : values) {
    if (model == ModelKind::poisson_mf)
      x = std::floor(5 * x * x);
    else if (model != ModelKind::gaussian_mf)
      x = x < 0.4;
  }
  return packed_if_binary(DataSet(std::move(values), {1, pixels}));
}

// Odd shapes: nothing is a multiple of a tile.
inline TrainConfig config_of(ModelKind model, ObjectiveKind kind) {
  TrainConfig config;
  const bool vae = model == ModelKind::vae;
  config.model = {model, vae ? 3 : 7, vae ? std::vector{64, 13} : std::vector<int>{}, {64, 13}, Activation::relu};
  config.objective.kind = kind;
  config.shared_until = 10;
  config.refine = {4, Adapt::inside, 0.05, 0.9, -1};
  config.batch = 37;
  config.precision = Precision::float32;
  return config;
}

// The same state in other numbers.
template <class To>
TrainState converted(TrainState state) {
  for (NamedArray& array : state.arrays)
    if (!array.name.starts_with("baseline"))
      array.values = std::visit([](const auto& v) { return std::vector<To>(v.begin(), v.end()); }, array.values);
  return state;
}

template <class State>
auto& array_of(State& state, const std::string& name) {
  return *std::ranges::find(state.arrays, name, &NamedArray::name);
}

inline std::vector<double> values_of(const NamedArray& array) {
  return std::visit([](const auto& v) { return std::vector<double>(v.begin(), v.end()); }, array.values);
}

// The largest difference of two arrays, relative to the largest of the first; infinite where there is nothing to
// compare.
inline double relative_error(const std::vector<double>& expected, const std::vector<double>& found) {
  if (expected.empty() || expected.size() != found.size()) return INFINITY;
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    error = std::max(error, std::isnan(found[i]) ? INFINITY : std::abs(expected[i] - found[i]));
  }
  return error == 0 ? 0 : error / largest;
}
// How many of the numbers are off by more than that, of all.
inline double share_beyond(const std::vector<double>& expected, const std::vector<double>& found, double tolerance) {
  if (expected.empty() || expected.size() != found.size()) return INFINITY;
  double largest = 0, beyond = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < expected.size(); ++i)
    beyond += !(std::abs(expected[i] - found[i]) <= tolerance * largest);
  return beyond / static_cast<double>(expected.size());
}

}  // namespace hone::test
