#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "hone/engine/cpu/cpu_engine.hpp"
#include "hone/engine/cuda/cuda_engine.hpp"
#include "hone/engine/cuda/refinement/products/chains.cuh"
#include "hone/engine/cuda/runs.cuh"
#include "hone/engine/engines.hpp"
#include "tests/support/methods.hpp"

namespace hone::cuda {

// Looks into runs, and refines alone.
class RunsProbe {
 public:
  explicit RunsProbe(Runs& runs)
      : plan_(runs.plan_), memory_(runs.memory_), trainer_(runs.trainer_), space_(runs.memory_.space()) {}

  // What the last iteration held: (batch, D) or (batch).
  struct State {
    std::vector<double> mean, sd, z0, log_p0, grad_p0, z, value, acceptance;
  };
  State state(int run) const {
    const auto read = [&](const double* from, std::size_t count) {
      return copy_of(memory_.of(from, run), count, "reading");
    };
    const std::size_t batch = plan_.config.batch, points = batch * space_.latent;
    const ChainArrays& c = space_.chains;
    return {.mean = read(space_.mean, points),
            .sd = read(space_.sd, points),
            .z0 = read(space_.z0, points),
            .log_p0 = read(space_.log_p0, batch),
            .grad_p0 = read(space_.grad_p0, points),
            .z = read(c.z, points),
            .value = read(c.value, batch),
            .acceptance = read(c.acceptance, batch)};
  }

  // A refinement alone, where there is one run: of the data from `first` on, from given points (batch, D) instead of
  // draws of q, as in iteration `iteration`. `plant` may change its random numbers, where one kernel makes it.
  struct DrawnNumbers {
    std::vector<double> momentum, log_uniform;  // (steps, batch, D), (steps, batch)
  };
  State refine(std::uint32_t iteration, int first, std::span<const double> points,
               const std::function<void(DrawnNumbers&)>& plant = {}) const {
    const std::size_t batch = plan_.config.batch;
    if (plan_.runs != 1 || first < 0 || first + plan_.config.batch > plan_.data ||
        points.size() != batch * space_.latent)
      throw InputError("a refinement alone is made with one run, data that are there and a point for each");
    if (plant && !(plan_.refinement && plan_.refines()))
      throw InputError("random numbers can be changed where one kernel makes a refinement");
    std::vector<int> indices(batch);
    std::iota(indices.begin(), indices.end(), first);
    copy_to(const_cast<int*>(space_.indices), indices, "copying a minibatch");
    const Launches& launches = trainer_.launches();
    trainer_.start_at(0, iteration);
    launches.prepare(space_);
    launches.queue().wait();
    copy_to(space_.z0, points, "copying points");
    copy_to(space_.chains.z, points, "copying points");
    launch_place(space_.chains, nullptr, 1, launches.queue());
    if (plant) change_numbers(plant);
    launches.refine_alone(space_);
    launches.queue().wait();
    return state(0);
  }

 private:
  void change_numbers(const std::function<void(DrawnNumbers&)>& plant) const {
    const std::size_t draws = static_cast<std::size_t>(space_.steps) * plan_.config.batch;
    DrawnNumbers numbers{copy_of(space_.drawn_momentum, draws * space_.latent, "reading momenta"),
                         copy_of(space_.drawn_log_uniform, draws, "reading uniforms")};
    plant(numbers);
    copy_to(space_.drawn_momentum, numbers.momentum, "copying momenta");
    copy_to(space_.drawn_log_uniform, numbers.log_uniform, "copying uniforms");
  }

  const TrainPlan& plan_;
  const RunMemory& memory_;
  Trainer& trainer_;
  const Space& space_;
};

}  // namespace hone::cuda

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
inline TrainConfig config_of(ModelKind model, const SomeObjective& objective) {
  TrainConfig config = TrainConfig::paper();
  const bool vae = model == ModelKind::vae;
  config.model = {model, vae ? 3 : 7, vae ? std::vector{64, 13} : std::vector<int>{}, {64, 13}, Activation::relu};
  config.model.initial = InitialWeights::paper;
  config.objective = objective;
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
