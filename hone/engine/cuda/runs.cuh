#pragma once

#include "hone/engine/cuda/evaluate/anneal.cuh"
#include "hone/engine/cuda/evaluate/evaluate.cuh"
#include "hone/engine/cuda/train/trainer.cuh"

namespace hone::cuda {

// The engine: runs of one configuration that differ by their seeds, side by side on one device. All make the same
// iterations at the same time.
class Runs final : public Engine {
 public:
  // `ranks` have the same runs, and share the data of evaluations and, of a single run whose refinement goes by
  // products, those of minibatches; null: there are none.
  Runs(const TrainConfig& config, const DataSet& train, std::vector<std::uint64_t> seeds, const PathOptions& path = {},
       Ranks* ranks = nullptr);

  const std::string& path() const { return plan_.words; }
  int runs() const override { return plan_.runs; }
  std::string device() const override;
  bool ranks_share_iterations() const override { return shared_; }
  std::uint32_t iteration() const override { return trainer_.iteration(); }
  double step_size(int run) const override { return trainer_.step_size(run); }
  void train(std::uint32_t iterations, std::span<TrainMetrics> metrics) override {
    trainer_.train(iterations, metrics);
  }
  const std::string& failure(int run) const override { return trainer_.failure(run); }
  std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress, int run) override {
    return cuda::evaluate(trained(run), data, config, progress);
  }
  std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingTask& task,
                                    const std::function<void(int)>& progress, int run) override {
    return cuda::anneal(trained(run), data, task, progress);
  }
  SimulatedData simulate(int count, int run) const override;
  TrainState save(int run) const override;
  void restore(const TrainState& state, int run) override;

 private:
  friend class RunsProbe;  // of tests

  void download_parameters(int run) const {  // into the model
    memory_.download(memory_.space().parameters, run, model_.parameters().values());
  }
  TrainedRun trained(int run) const;

  Ranks* ranks_;
  std::vector<std::uint64_t> seeds_;
  mutable Model<float> model_;  // names, shapes, the start, exact likelihoods
  const TrainPlan plan_;
  RunMemory memory_;
  bool shared_;  // by ranks: each has some rows of the minibatch
  Trainer trainer_;
};

}  // namespace hone::cuda
