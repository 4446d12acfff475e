#pragma once

#include <functional>

#include "hone/engine/cuda/evaluate/evaluate.cuh"
#include "hone/engine/cuda/train/trainer.cuh"
#include "hone/engine/engine.hpp"

namespace hone::cuda {

// Some runs of one configuration that differ by their seeds, side by side on one device. All make the same iterations
// at the same time.
class Runs {
 public:
  Runs(const TrainConfig& config, const DataSet& train, std::vector<std::uint64_t> seeds, const PathOptions& path = {});

  int count() const { return plan_.runs; }
  std::uint32_t iteration() const { return trainer_.iteration(); }
  double step_size(int run) const { return trainer_.step_size(run); }
  const std::string& path() const { return plan_.words; }
  void train(std::uint32_t iterations, std::span<TrainMetrics> metrics) { trainer_.train(iterations, metrics); }
  const std::string& failure(int run) const { return trainer_.failure(run); }
  TrainState save(int run) const;
  void restore(int run, const TrainState& state);
  std::vector<PointEvaluation> evaluate(int run, const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress) const;
  std::vector<AnnealedPoint> anneal(int run, const DataSet& data, const AnnealingTask& task,
                                    const std::function<void(int)>& progress) const;
  SimulatedData simulate(int run, int count) const;

 private:
  friend class RunsProbe;  // of tests

  TrainedRun trained(int run) const;

  std::vector<std::uint64_t> seeds_;
  mutable Model<float> model_;  // names, shapes, the start, exact likelihoods
  const TrainPlan plan_;
  RunMemory memory_;
  Trainer trainer_;
};

}  // namespace hone::cuda
