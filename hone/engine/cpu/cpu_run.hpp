#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hone/base/parallel.hpp"
#include "hone/base/random.hpp"
#include "hone/base/ranks.hpp"
#include "hone/engine/cpu/iteration.hpp"
#include "hone/engine/cpu/own_optimizer.hpp"
#include "hone/engine/engine_internals.hpp"
#include "hone/engine/state_arrays.hpp"
#include "hone/latent/latent_target.hpp"
#include "hone/latent/minibatch_family.hpp"
#include "hone/latent/model.hpp"
#include "hone/mcmc/shared_refiner.hpp"
#include "hone/objective/local_baseline.hpp"
#include "hone/objective/objective.hpp"

namespace hone {

// One run of the cpu engine, the readable reference: an iteration is composed of the rooms above. Threads share the
// columns of the minibatch, and then the elements of the parameters. Ranks, if there are any, share the columns, too:
// each has the parameters and the numbers of all columns that other columns depend on, and computes the rest for its
// own columns. No sum depends on how many threads or ranks there are.
template <class Real>
class CpuRun {
 public:
  // The run has config.seed. `team` must outlive the run. Takes the minibatches and the observer, if any.
  CpuRun(const TrainConfig& config, const DataSet& train, Team& team, EngineOptions& options,
         EngineInternals& internals);

  double step_size() const { return refiner_.step_size(); }
  void step(TrainMetrics& metrics);  // one iteration; throws Error if a parameter is no longer finite
  std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress);
  std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingTask& task,
                                    const std::function<void(int)>& progress);
  SimulatedData simulate(int count) const { return model_.simulate(random_, count); }
  TrainState save() const;
  void restore(const TrainState& state);

 private:
  void encode();
  void sample();
  void evaluate(const Target& target, const Matrix<double>& z, Want want, std::span<double> value,
                MatrixView<double> gradient);
  Refinement refine();
  Refinement refine_scaled();
  Matrix<double> standard_deviations();
  void find_gradients();
  void sum_gradients();
  void sum_block(int block, int blocks, SumsFrom from);
  void leave_out_dropped(Matrix<double>& z);
  void clear_dropped(int begin, int end);
  void update();
  bool move(std::span<Real> theta, double decayed);
  void pack();
  double rate_of(const Tensor& tensor) const;
  TrainedParameters<Real> trained() const;
  BaselineFactory baselines();
  template <class Do>
  void for_columns(Do&& work) {
    team_.for_shares(own_.count(), [&](int begin, int end, int) {
      if (begin < end) work(own_.begin + begin, own_.begin + end);
    });
  }

  TrainConfig config_;
  const DataSet& data_;
  PhiloxSource philox_;
  const RandomSource& random_;
  std::unique_ptr<Minibatches> minibatches_;
  std::function<void(const IterationView&)> observe_;
  Team& team_;
  Ranks* ranks_;   // none: this process has all columns
  ItemRange own_;  // columns of this rank
  Model<Real> model_;
  Minibatch<Real> minibatch_;
  LatentTarget<Real> target_;      // exact
  LatentTarget<Real> trajectory_;  // what chains move by: with bf16 its gradients are not exact, but its values are
  MinibatchFamily family_;
  Evidence evidence_;
  std::map<std::string, std::shared_ptr<LocalBaseline>> local_;  // by name in checkpoints
  std::unique_ptr<Objective> objective_;
  bool analytic_;
  SharedRefiner refiner_;
  EncoderTape<Real> encoder_tape_;
  Tape<Real> decoder_tape_;
  std::vector<double> ascent_;                // of q's parameters
  Batch<Real> arrays_[3];                     // memory of the next three, touched first by the threads that use it
  std::span<Real> gradient_;                  // of all parameters
  std::array<std::vector<Real>, 2> message_;  // blocks of it, from rank to rank
  std::span<Real> first_, second_;            // the optimizer's moments; RMSProp's G is second_
  std::unique_ptr<OwnOptimizer<Real>> own_optimizer_;  // none: the library's
  std::vector<int> indices_;                           // of the minibatch's data
  std::vector<std::uint32_t> columns_;                 // 0 … batch − 1
  std::uint32_t iteration_ = 0;
};

}  // namespace hone
