#include "hone/engine/cuda/runs.cuh"

#include "hone/engine/state_arrays.hpp"

namespace hone::cuda {
namespace {

constexpr Term terms[2] = {Term::first, Term::second};  // each may have a control variate

}  // namespace

Runs::Runs(const TrainConfig& config, const DataSet& train, std::vector<std::uint64_t> seeds, const PathOptions& path,
           Ranks* ranks)
    : ranks_(ranks),
      seeds_(std::move(seeds)),
      model_(config.model, train),
      plan_(make_train_plan(config, train, model_, static_cast<int>(seeds_.size()), path)),
      memory_(plan_, model_, train, seeds_),
      shared_(ranks && ranks->size() > 1 && plan_.runs == 1 && !plan_.refinement && !plan_.encoder.convolves()),
      trainer_(plan_, memory_, seeds_, shared_ ? ranks : nullptr) {
  for (int run = 0; run < plan_.runs; ++run) {
    model_.initialize(PhiloxSource(seeds_[run]));
    memory_.upload(memory_.space().parameters, run, model_.parameters().values());
    RunState state = {};
    state.step_size = config.refine.step_size;
    memory_.set_state(run, state);
  }
}

std::string Runs::device() const {
  const CudaSupport support = cuda_support();
  return support.own_device().name + ", " + path() +
         (shared_ ? "; ranks share minibatches, launched kernel by kernel" : "");
}

TrainState Runs::save(int run) const {
  const Space& space = memory_.space();
  TrainState state{iteration(), step_size(run), {}};
  const std::size_t size = model_.parameters().size();
  std::vector<float> first(space.first ? size : 0), second(size);
  download_parameters(run);
  memory_.download(space.second, run, second);
  if (space.first) memory_.download(space.first, run, first);
  add_parameters<float>(state, {model_.parameters().tensors(), model_.parameters().values(), first, second});
  const RunState device = memory_.state(run);
  const bool shared = plan_.config.baseline == LatentBaseline::global || iteration() <= plan_.config.shared_until;
  for (int term = 0; term < 2; ++term) {
    if (!space.baseline[term]) continue;
    std::vector<double> values(space.data, device.shared[term]);
    if (!shared) values = copy_of(memory_.of(space.baseline[term], run), values.size(), "reading control variates");
    add_array(state, baseline_name(terms[term]), values);
  }
  return state;
}

void Runs::restore(const TrainState& state, int run) {
  const Space& space = memory_.space();
  const std::size_t size = model_.parameters().size();
  std::vector<float> first(space.first ? size : 0), second(size);
  take_parameters<float>(state, {model_.parameters().tensors(), model_.parameters().values(), first, second});
  RunState device = {};
  device.step_size = state.step_size;
  for (int term = 0; term < 2; ++term) {
    if (!space.baseline[term]) continue;
    std::vector<double> values(space.data);
    take_array(state, baseline_name(terms[term]), values);
    device.shared[term] = values.front();
    copy_to(memory_.of(space.baseline[term], run), values, "copying control variates");
  }
  memory_.upload(space.parameters, run, model_.parameters().values());
  memory_.upload(space.second, run, second);
  if (space.first) memory_.upload(space.first, run, first);
  memory_.set_state(run, device);
  trainer_.restart(run, state.iteration, state.step_size);
}

TrainedRun Runs::trained(int run) const {
  download_parameters(run);
  return {.plan = plan_,
          .model = model_,
          .parameters = memory_.of(memory_.space().parameters, run),
          .seed = seeds_[run],
          .step_size = step_size(run),
          .ranks = ranks_};
}

SimulatedData Runs::simulate(int count, int run) const {
  download_parameters(run);
  model_.pack(0, 1);
  return model_.simulate(PhiloxSource(seeds_[run]), count);
}

}  // namespace hone::cuda
