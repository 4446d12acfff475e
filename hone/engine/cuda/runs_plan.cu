// How runs are executed: which kernels, and how their work is shared out.
#include <algorithm>

#include "hone/engine/cuda/runs.cuh"

namespace hone::cuda {
namespace {

// How long a refinement takes with so many chains a cluster, against 8: in registers and streaming as measured (H200,
// paper's shapes; with hidden layers there are too few registers beyond 16), in shared memory about as long as 16
// chains' products and 3 more meetings. Of teams, which are compared with each other only, a gradient's time.
double refinement_time(const TrajectoryPlan& plan) {
  if (plan.weights == WeightPlace::cache) return team_time(plan);
  if (plan.weights == WeightPlace::shared) return (1 + plan.chains / 16.0) / 1.5;
  if (plan.weights == WeightPlace::streamed) return plan.depth == 1 ? 3.1 : 3.8;
  if (plan.depth == 1) return plan.chains == 8 ? 1 : plan.chains == 16 ? 1.3 : 2.1;
  return plan.chains == 8 ? 1 : plan.chains == 16 ? 1.6 : 4.3;
}

}  // namespace

// The cluster kernel where the decoder fits it, in registers rather than in shared memory, else teams; else, or where
// that takes much less time, one kernel a product. With several runs, or a large batch, more chains share a cluster, or
// a block alone, since the chip is full anyway.
void Runs::plan_refinement(const PathOptions& options) {
  const bool clusters = options.kind == PathKind::chosen || options.kind == PathKind::clusters,
             teams = options.kind == PathKind::chosen || options.kind == PathKind::teams;
  const DecoderShape decoder{decoder_net_, config_.model.density(), data_.bits() != nullptr, math_, refines()};
  const auto wanted = [&](int chains) { return options.chains == 0 || chains == options.chains; };
  double best = 0;
  const auto consider = [&](const std::optional<TrajectoryPlan>& plan) {
    if (!plan) return;
    const int wave = resident_clusters(*plan, math_) / ceil_div(config_.batch, plan->chains);
    const double cost = ceil_div(count(), wave) * refinement_time(*plan);
    const auto shared = [](const TrajectoryPlan& p) { return p.weights == WeightPlace::shared; };
    if (plan_ && (shared(*plan_) == shared(*plan) ? cost >= best : shared(*plan))) return;
    best = cost;
    plan_ = plan;
    wave_ = wave;
  };
  const int batch = config_.batch;
  for (const int chains : {8, 16, 32})
    if (clusters && wanted(chains)) consider(plan_trajectory(decoder, batch, chains, options.blocks));
  if (clusters && options.chains == 0 && options.blocks == 0) consider(plan_trajectory(decoder, batch, 16, 1));
  if (teams && !plan_)
    for (const int chains : {16, 32, 64})
      if (wanted(chains)) consider(plan_teams(decoder, batch, count(), chains, options.blocks));
  // a team's estimate is up to a third too long where layers are large, of products up to a fifth too short
  if (options == PathOptions() && plan_ && plan_->weights == WeightPlace::cache &&
      decoder_path_.gradient_time(decoder_net_, batch, count()) < 0.83 * best) {
    plan_.reset();
    wave_ = 1;
  }
  if (plan_ && plan_->weights == WeightPlace::cache) {
    TeamPlan& team = plan_->team;
    team.run_size = team.weights_size + ceil_div(batch, plan_->chains) * team.team_size;
    team_memory_ = Memory<uint4>(team.run_size * static_cast<std::size_t>(count()));
  }
  if (plan_)
    path_ = "one kernel a refinement: " + std::to_string(ceil_div(config_.batch, plan_->chains)) +
            (plan_->weights == WeightPlace::cache ? " teams of " + std::to_string(plan_->team.blocks) + " blocks, "
             : plan_->cluster == 1                ? " blocks alone, "
                                                  : " clusters of " + std::to_string(plan_->cluster) + " blocks, ") +
            std::to_string(plan_->chains) + " chains each, weights " +
            (plan_->weights == WeightPlace::registers                      ? "in registers"
             : plan_->weights == WeightPlace::cache                        ? "from the cache"
             : plan_->weights == WeightPlace::streamed && plan_->depth > 1 ? "streaming by"
                                                                           : "in shared memory");
  else
    path_ = "one kernel a product" + decoder_path_.words() +
            ", replayed as a graph (layers or batch are large, or a device is below compute capability 9.0)";
}

// What takes longest first: the small ones fill the gaps.
void Runs::make_tasks() {
  std::vector<UpdateTask> tasks;
  const auto add = [&](std::vector<UpdateTask> more) { tasks.insert(tasks.end(), more.begin(), more.end()); };
  for (int net = 0; net < EncoderSplit::nets; ++net) {
    Net one = mean_net_;
    Tape tape = encoder_tape_;
    for (int l = 0; l < one.depth; ++l) {
      one.layer[l].weight += net * net_parameters_;
      one.layer[l].bias += net * net_parameters_;
      tape.value[l] += static_cast<std::size_t>(net) * config_.batch * one.layer[l].ld;
      tape.delta[l] += static_cast<std::size_t>(net) * config_.batch * one.layer[l].ld;
    }
    const double rate = net == 0 ? config_.rate_mean : config_.rate_scale;
    if (first_sums_.parts > 0) add(strip_tasks(one, tape, rate, first_sums_, net, config_.batch));
    for (int l = 0; l < one.depth; ++l) add(update_tasks(one, tape, l, rate, l > 0 || first_sums_.parts == 0));
  }
  for (int l = 0; l < decoder_net_.depth; ++l) {
    std::vector<UpdateTask> of_layer = update_tasks(decoder_net_, decoder_tape_, l, config_.rate_model, true);
    if (packing() != Packing::none)
      for (UpdateTask& task : of_layer) task.packed_layer = task.rows > 0 ? l : -1;
    add(of_layer);
  }
  std::ranges::stable_sort(tasks, std::greater<>(), [](const UpdateTask& t) { return (t.words > 0) + (t.rows > 0); });
  strips_ = static_cast<int>(std::ranges::count_if(tasks, [](const UpdateTask& t) { return t.words > 0; }));
  tasks_ = Memory<UpdateTask>(std::span<const UpdateTask>(tasks));
}

Packing Runs::packing() const {
  if (!plan_ || plan_->weights != WeightPlace::registers) return Packing::none;
  return decoder_net_.depth == 1 ? Packing::one_layer : Packing::hidden_layers;
}

UpdateSpec Runs::update_spec() const {
  return {tasks_.data(),
          static_cast<int>(tasks_.size()),
          strips_,
          config_.optimizer,
          math_,
          objective(),
          {{bits_.data(), values_.data(), constants_.data(), ceil_div(data_.dimension(), 64), data_.dimension()},
           {config_.rate_decay, config_.decay_every},
           seed_memory_.data(),
           plan_ && refines() ? config_.refine.steps : 0,
           hmc_shape()},
          packing()};
}

}  // namespace hone::cuda
