#include "hone/engine/cuda/runs.cuh"

#include "hone/engine/cuda/train/state.cuh"

namespace hone::cuda {

Runs::Runs(const TrainConfig& config, const DataSet& train, std::vector<std::uint64_t> seeds, const PathOptions& path)
    : seeds_(std::move(seeds)),
      model_(config.model, train),
      plan_(make_train_plan(config, train, model_.parameters().tensors(), static_cast<int>(seeds_.size()), path)),
      memory_(plan_, model_, train, seeds_),
      trainer_(plan_, memory_, seeds_) {
  for (int run = 0; run < count(); ++run) initialize(plan_, memory_, model_, run, seeds_[run]);
}

TrainState Runs::save(int run) const { return cuda::save(plan_, memory_, model_, run, iteration(), step_size(run)); }

void Runs::restore(int run, const TrainState& state) {
  cuda::restore(memory_, model_, run, state);
  trainer_.restart(run, state.iteration, state.step_size);
}

TrainedRun Runs::trained(int run) const {
  download_parameters(memory_, run, model_);
  return {.config = plan_.config,
          .math = plan_.math,
          .decoder = plan_.decoder,
          .encoder = plan_.encoder,
          .net_parameters = plan_.net_parameters,
          .model = model_,
          .parameters = memory_.of(memory_.space().parameters, run),
          .seed = seeds_[run],
          .step_size = step_size(run)};
}

std::vector<PointEvaluation> Runs::evaluate(int run, const DataSet& data, const EvaluationConfig& config,
                                            const std::function<void(int)>& progress) const {
  return cuda::evaluate(trained(run), data, config, progress);
}

std::vector<AnnealedPoint> Runs::anneal(int run, const DataSet& data, const AnnealingTask& task,
                                        const std::function<void(int)>& progress) const {
  return cuda::anneal(trained(run), data, task, progress);
}

SimulatedData Runs::simulate(int run, int count) const {
  download_parameters(memory_, run, model_);
  model_.pack(0, 1);
  return model_.simulate(PhiloxSource(seeds_[run]), count);
}

}  // namespace hone::cuda
