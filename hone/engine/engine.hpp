#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hone/engine/evaluation.hpp"
#include "hone/engine/train_state.hpp"
#include "hone/latent/data_set.hpp"

namespace hone {

/// Trains and evaluates a latent-variable model: a group of runs with the same configuration and data and a seed each.
/// A single run is a group of one, and every function takes run 0 unless told otherwise. The interface is coarse:
/// each engine decides what an iteration consists of.
class Engine {
 public:
  virtual ~Engine() = default;

  /// Number of runs.
  virtual int runs() const = 0;
  virtual std::string device() const { return {}; }  ///< where and how it executes, in words; may be empty
  /// Whether ranks, if there are any, share the iterations of a run. If not, each makes all of them.
  virtual bool ranks_share_iterations() const { return true; }
  virtual std::uint32_t iteration() const = 0;  ///< the same for all runs
  /// The kernel's current step size.
  virtual double step_size(int run = 0) const = 0;

  /// Makes `iterations` iterations of every run and adds run r's estimates to metrics[r], one per run. A run fails when
  /// a parameter is no longer finite. Only that run ends: `failure` says why, and its metrics and state are meaningless
  /// from then on. An Error thrown here concerns all runs.
  virtual void train(std::uint32_t iterations, std::span<TrainMetrics> metrics) = 0;
  virtual const std::string& failure(int run = 0) const = 0;  ///< what ended the run; empty while it is sound

  /// For a single run: throws Error if the run fails.
  void train(std::uint32_t iterations, TrainMetrics& metrics);

  /// The log-likelihood of data by importance sampling (evaluation.hpp), one result per datum. `progress` is told how
  /// many are done.
  virtual std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                                const std::function<void(int)>& progress, int run = 0) = 0;

  /// The same by annealed importance sampling.
  virtual std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingTask& task,
                                            const std::function<void(int)>& progress, int run = 0) = 0;

  /// Draws `count` data from the model with its present parameters.
  virtual SimulatedData simulate(int count, int run = 0) const = 0;

  /// The state of a run, from which restore() continues. All runs must be restored to the same iteration before
  /// training continues.
  virtual TrainState save(int run = 0) const = 0;
  /// Continues from a stored state. Throws InputError if it belongs to another model.
  virtual void restore(const TrainState& state, int run = 0) = 0;
};

}  // namespace hone
