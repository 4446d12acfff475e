#include "hone/engine/cuda/train/state.cuh"

#include "hone/engine/state_arrays.hpp"

namespace hone::cuda {
namespace {

constexpr Term terms[2] = {Term::first, Term::second};  // each may have a control variate

}  // namespace

void initialize(const TrainPlan& plan, RunMemory& memory, Model<float>& model, int run, std::uint64_t seed) {
  model.initialize(PhiloxSource(seed));
  memory.upload(memory.space().parameters, run, model.parameters().values());
  RunState state = {};
  state.step_size = plan.config.refine.step_size;
  memory.set_state(run, state);
}

void download_parameters(const RunMemory& memory, int run, Model<float>& model) {
  memory.download(memory.space().parameters, run, model.parameters().values());
}

TrainState save(const TrainPlan& plan, const RunMemory& memory, Model<float>& model, int run, std::uint32_t iteration,
                double step_size) {
  const Space& space = memory.space();
  TrainState state{iteration, step_size, {}};
  const std::size_t size = model.parameters().size();
  std::vector<float> first(space.first ? size : 0), second(size);
  download_parameters(memory, run, model);
  memory.download(space.second, run, second);
  if (space.first) memory.download(space.first, run, first);
  add_parameters<float>(state, {model.parameters().tensors(), model.parameters().values(), first, second});
  const RunState device = memory.state(run);
  const bool shared = plan.config.baseline == LatentBaseline::global || iteration <= plan.config.shared_until;
  for (int term = 0; term < 2; ++term) {
    if (!space.baseline[term]) continue;
    std::vector<double> values(space.data, device.shared[term]);
    if (!shared) values = copy_of(memory.of(space.baseline[term], run), values.size(), "reading control variates");
    add_array(state, baseline_name(terms[term]), values);
  }
  return state;
}

void restore(RunMemory& memory, Model<float>& model, int run, const TrainState& state) {
  const Space& space = memory.space();
  const std::size_t size = model.parameters().size();
  std::vector<float> first(space.first ? size : 0), second(size);
  take_parameters<float>(state, {model.parameters().tensors(), model.parameters().values(), first, second});
  RunState device = {};
  device.step_size = state.step_size;
  for (int term = 0; term < 2; ++term) {
    if (!space.baseline[term]) continue;
    std::vector<double> values(space.data);
    take_array(state, baseline_name(terms[term]), values);
    device.shared[term] = values.front();
    copy_to(memory.of(space.baseline[term], run), values, "copying control variates");
  }
  memory.upload(space.parameters, run, model.parameters().values());
  memory.upload(space.second, run, second);
  if (space.first) memory.upload(space.first, run, first);
  memory.set_state(run, device);
}

}  // namespace hone::cuda
