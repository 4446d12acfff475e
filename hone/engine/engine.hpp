#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "hone/base/statistics.hpp"
#include "hone/engine/config.hpp"
#include "hone/engine/evaluation.hpp"
#include "hone/latent/data_set.hpp"

namespace hone {

struct IterationView;  // cpu/iteration.hpp

// A named array of numbers, last index fastest.
struct NamedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::variant<std::vector<float>, std::vector<double>> values;
};

// All that training depends on: given to an engine of either kind, it goes on as if it had never stopped.
struct TrainState {
  std::uint32_t iteration = 0;
  double step_size = 0;
  std::vector<NamedArray> arrays;  // parameters, the optimizer's moments, control variates
};

// Figures of the iterations since the last report, each a mean over a minibatch.
struct TrainMetrics {
  Moments elbo, vcd, acceptance;
  std::int64_t rejected_nonfinite = 0;
  std::int64_t dropped_draws = 0;
};

// Data that a model itself has made, and what it made them of: exact draws of their posteriors.
struct SimulatedData {
  Matrix<double> z;  // (D, data)
  DataSet data;
};

// Trains and evaluates a latent-variable model. Coarse on purpose: what an iteration consists of is the engine's own.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string device() const { return {}; }  // where and how it executes, in words; empty: nothing to say
  virtual std::uint32_t iteration() const = 0;
  virtual double step_size() const = 0;

  // Makes so many iterations. Throws Error, naming the iteration, when a parameter is no longer finite.
  virtual void train(std::uint32_t iterations, TrainMetrics& metrics) = 0;

  // The log-likelihood of data, as `evaluation.hpp` says; one result a point. `progress` hears how many are done.
  virtual std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                                const std::function<void(int)>& progress) = 0;

  // The log-likelihood of data by annealed importance sampling; likewise.
  virtual std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingTask& task,
                                            const std::function<void(int)>& progress) = 0;

  // So many fresh data of the model as it is.
  virtual SimulatedData simulate(int count) const = 0;

  virtual TrainState save() const = 0;
  virtual void restore(const TrainState& state) = 0;  // InputError where it is of another model
};

// Runs of one configuration that differ by their seeds and make the same iterations side by side.
class EngineGroup {
 public:
  virtual ~EngineGroup() = default;

  virtual std::string device() const = 0;  // as Engine::device
  virtual std::uint32_t iteration() const = 0;
  virtual double step_size(int run) const = 0;

  // Makes so many iterations of every run, whose figures go to metrics[run]. What ends a run (a parameter that is no
  // longer finite) ends it alone: the others go on, and its metrics and state mean nothing from then on.
  virtual void train(std::uint32_t iterations, std::span<TrainMetrics> metrics) = 0;
  virtual const std::string& failure(int run) const = 0;  // what ended a run; empty: nothing did

  virtual TrainState save(int run) const = 0;
  virtual void restore(int run, const TrainState& state) = 0;  // all at the same iteration, before training
};

// Which data make up a minibatch. A function of the iteration alone, so that resuming needs no state.
class Minibatches {
 public:
  virtual ~Minibatches() = default;
  virtual void fill(std::uint32_t iteration, std::span<int> data) = 0;  // iterations count from 1
};

// Runs through a permutation of the data; when it is used up, perhaps in the middle of a minibatch, a new one begins.
std::unique_ptr<Minibatches> permuted_minibatches(int data, std::uint64_t seed);

struct EngineOptions {
  int threads = 1;
  const RandomSource* random = nullptr;                    // to replay recorded numbers; null: Philox of the seed
  std::unique_ptr<Minibatches> minibatches = {};           // likewise
  std::function<void(const IterationView&)> observe = {};  // called in every iteration, before the update
};

// The data must outlive the engine. Throws DataError where data and model do not fit.
std::unique_ptr<Engine> make_cpu_engine(const TrainConfig& config, const DataSet& train, EngineOptions options);

}  // namespace hone
