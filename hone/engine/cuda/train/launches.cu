#include "hone/engine/cuda/train/launches.cuh"

#include <algorithm>

#include "hone/engine/cuda/encoder/datum.cuh"
#include "hone/engine/cuda/refinement/products/chains.cuh"
#include "hone/engine/cuda/refinement/streamed/streamed_refinement.cuh"

namespace hone::cuda {
namespace {

// Parts of an iteration with kernels of their own, one warp per datum.

// q's means and standard deviations from the encoder's outputs, z0 with the noise that was prepared; the chains start
// there.
__global__ void draw(Space space) {
  const auto [run, column, lane] = this_row();
  if (column >= space.batch) return;
  for (int d = lane; d < space.latent; d += 32) {
    const int j = column * space.ld_latent + d;
    const Draw drawn(space.of(space.raw_mean, run)[j], space.of(space.raw_sd, run)[j],
                     space.of(space.noise, run)[column * space.latent + d]);
    drawn.place(space, run, column, d);
    const ChainArrays chains = space.chains.of(run);
    chains.z[column * space.latent + d] = drawn.z;
    chains.input[j] = static_cast<float>(drawn.z);
  }
}

// After the value and gradient at z0 are known: which draws are inside the support. Those that are not stand at 0.
__global__ void settle(Space space) {
  const WarpChain c(space.chains);
  if (!c.exists()) return;
  const bool alive = *c.value != -infinity;
  double* gradient = space.of(space.grad_p0, c.run_index) + c.index * space.latent;
  c.each_dimension([&](int d) {
    if (!alive) c.gradient[d] = 0;
    gradient[d] = c.gradient[d];
  });
  if (c.lane != 0) return;
  space.of(space.alive, c.run_index)[c.index] = alive;
  space.of(space.log_p0, c.run_index)[c.index] = alive ? *c.value : 0;
}

// From where earlier kernels have put everything.
__device__ Datum datum_of(const Space& space, const ObjectiveSpec& spec, int run, int column) {
  const ChainArrays chains = space.chains.of(run);
  const std::size_t i = static_cast<std::size_t>(column) * space.latent;
  const int datum = space.of(space.datum, run)[column];  // the slowest load starts first
  const bool alive = space.of(space.alive, run)[column];
  return {.mean = space.of(space.mean, run) + i,
          .sd = space.of(space.sd, run) + i,
          .noise = space.of(space.noise, run) + i,
          .raw_sd = space.of(space.raw_sd, run) + static_cast<std::size_t>(column) * space.ld_latent,
          .zt = chains.z + i,
          .grad_p0 = space.of(space.grad_p0, run) + i,
          .alive = alive,
          .log_p0 = space.of(space.log_p0, run)[column],
          .value = alive ? chains.value[column] : 0,
          .baseline = {baseline_of(space, spec, run, 0, datum), baseline_of(space, spec, run, 1, datum)}};
}

// The objective's gradient in q's means and deviations, as the encoder's last deltas.
__global__ void ascend(Space space, ObjectiveSpec spec) {
  const auto [run, column, lane] = this_row();
  if (column >= space.batch) return;
  const std::size_t at = static_cast<std::size_t>(column) * space.ld_latent;
  float *to_mean = space.of(space.delta_mean, run) + at, *to_sd = space.of(space.delta_sd, run) + at;
  ascend_datum(space, spec, run, column, datum_of(space, spec, run, column), lane, [&](int d, float mean, float sd) {
    to_mean[d] = mean;
    to_sd[d] = sd;
  });
}

}  // namespace

Launches::Launches(const TrainPlan& plan, const RunMemory& memory, Ranks* ranks) : plan_(plan), memory_(memory) {
  std::vector<UpdateTask> all = tasks();
  if (ranks) sharing_.emplace(plan, *ranks, all, queue_);
  strips_ = static_cast<int>(std::ranges::count_if(all, [](const UpdateTask& t) { return t.words > 0; }));
  tasks_ = Memory<UpdateTask>(all);
}

Launches::OneNetwork Launches::encoder_network(int index) const {
  OneNetwork one{plan_.encoder, memory_.places().encoder_tape};
  for (int l = 0; l < one.net.depth; ++l) {
    Layer& layer = one.net.layer[l];
    layer.weight += index * plan_.net_parameters;
    layer.bias += index * plan_.net_parameters;
    one.tape.value[l] += static_cast<std::size_t>(index) * plan_.config.batch * layer.ld;
    one.tape.delta[l] += static_cast<std::size_t>(index) * plan_.config.batch * layer.ld;
  }
  return one;
}

// The longest first: small ones fill the gaps.
std::vector<UpdateTask> Launches::tasks() const {
  const TrainConfig& config = plan_.config;
  const RunPlaces& places = memory_.places();
  std::vector<UpdateTask> tasks;
  const auto add = [&](const std::vector<UpdateTask>& more) { tasks.insert(tasks.end(), more.begin(), more.end()); };
  for (int net = 0; net < EncoderSplit::nets; ++net) {
    const auto [one, tape] = encoder_network(net);
    FirstLayerSums strips = places.first_sums;
    strips.sums += static_cast<std::size_t>(net) * config.batch * one.layer[0].ld;
    const double rate = net == 0 ? config.rate_mean : config.rate_scale;
    add(update_tasks(one, tape, 0, {.weights = rate / plan_.input_scale, .biases = rate}, strips));
    for (int l = 1; l < one.depth; ++l) add(update_tasks(one, tape, l, {rate, rate}));
  }
  for (int l = 0; l < plan_.decoder.depth; ++l) {
    std::vector<UpdateTask> of_layer =
        update_tasks(plan_.decoder, places.decoder_tape, l, {config.rate_model, config.rate_model});
    if (plan_.refinement && plan_.refinement->kind == PathKind::registers)
      for (UpdateTask& task : of_layer) task.packed_layer = task.rows > 0 ? l : -1;
    add(of_layer);
  }
  std::ranges::stable_sort(tasks, std::greater<>(), [](const UpdateTask& t) { return (t.words > 0) + (t.rows > 0); });
  return tasks;
}

ObjectiveSpec Launches::objective() const {
  const TrainConfig& config = plan_.config;
  const ObjectiveTerms terms = config.objective->terms().value();
  return {.objective = terms,
          .baseline_decay = config.baseline_decay,
          .analytic = terms.entropy != Entropy::sampled,
          .shared_until = config.baseline == LatentBaseline::local ? config.shared_until : assessment_iteration,
          .adapt = config.refine.adapt,
          .sizes = memory_.step_sizes()};
}

Surroundings Launches::surroundings() const {
  const RunPlaces& places = memory_.places();
  Surroundings around = plan_.around;
  around.encoder = {.net = plan_.encoder,
                    .net_parameters = plan_.net_parameters,
                    .tape = places.encoder_tape,
                    .first = places.first_sums};
  around.objective = objective();
  return around;
}

UpdateSpec Launches::update() const {
  const TrainConfig& config = plan_.config;
  return {.tasks = tasks_.data(),
          .count = static_cast<int>(tasks_.size()),
          .strips = strips_,
          .optimizer = config.optimizer,
          .math = plan_.math,
          .objective = objective(),
          .preparation = {.data = memory_.data(),
                          .rate_decay = config.rate_decay,
                          .decay_every = config.decay_every,
                          .warmup = config.warmup,
                          .seed = memory_.seeds(),
                          .steps = plan_.refinement && plan_.refines() ? config.refine.steps : 0,
                          .shape = plan_.hmc()},
          .one_layer = plan_.decoder.depth == 1};
}

template <class Networks>
void Launches::refine_by(const Networks& decoder, const Space& space) const {
  const RefineConfig& refine = plan_.config.refine;
  const Space own = own_of(space);
  const ChainArrays& chains = own.chains;
  const int batch = own.batch, runs = plan_.runs;
  const ModelConfig& model = plan_.config.model;
  Comparison data{.density = model.density(), .x = own.x, .ldx = own.ld_pixels, .categories = model.categories};
  const auto gradient = [&](bool value) {
    data.partial = value ? chains.partial : nullptr;
    decoder.compute_gradient(batch, data, chains.likelihood_gradient, chains.ld);
  };
  decoder.prepare();
  gradient(true);
  launch_begin(chains, runs, queue_);
  launch(settle, warps_for(batch, runs), queue_, "settling draws", own);
  const auto first_datum = static_cast<std::uint32_t>(sharing_ ? sharing_->rows().begin : 0);
  HmcStep step{.numbers = {.seed = memory_.seeds(),
                           .iteration = &space.now->iteration,
                           .fixed_iteration = 0,
                           .first_datum = first_datum},
               .sizes = memory_.step_sizes(),
               .shape = plan_.hmc(),
               .index = 0,
               .adapts = false};
  for (int i = 0; plan_.refines() && i < refine.steps; ++i) {
    const bool adapts = refine.adapt == Adapt::inside && i < refine.adapting_steps();
    step.index = static_cast<std::uint32_t>(i);
    step.adapts = adapts && !sharing_;
    launch_step(chains, step, runs, queue_, gradient);
    if (!sharing_ || !adapts) continue;
    sharing_->exchange_outcomes(space.chains);
    launch_adapt(space.chains, step.sizes, runs, queue_);
  }
  launch_place(chains, space.alive, runs, queue_);
  data.partial = nullptr;
  data.alive = space.alive;
  decoder.compare(batch, data);
  decoder.backward(batch);
  decoder.record(batch);
}

void Launches::refine(const Space& space, const Surroundings& around) const {
  const int runs = plan_.runs;
  if (!plan_.refinement) {
    const Sides sides{.runs = runs, .run = space.stride};
    const RunPlaces& places = memory_.places();
    return places.decoder_path.with(plan_.decoder, space.parameters, places.decoder_tape, sides, queue_,
                                    [&](const auto& decoder) { refine_by(decoder, space); });
  }
  if (plan_.refinement->kind == PathKind::streamed)
    launch_pack_streamed(space, plan_.decoder, *plan_.refinement, runs, queue_);
  const RefineConfig& config = plan_.config.refine;
  const RefinementSpec spec{.decoder = plan_.decoder,
                            .tape = memory_.places().decoder_tape,
                            .shape = plan_.hmc(),
                            .steps = plan_.refines() ? config.steps : 0,
                            .adapting = config.adapting_steps(),
                            .adapt = config.adapt,
                            .sizes = memory_.step_sizes(),
                            .plan = *plan_.refinement,
                            .clusters = ceil_div(plan_.config.batch, plan_.refinement->chains),
                            .around = around};
  for (int run = 0; run < runs; run += plan_.wave)
    launch_refinement(space, spec, run, std::min(plan_.wave, runs - run), queue_);
}

// The gradients of convolutions, which an update's tasks then apply.
void Launches::sum_convolutions(const Space& space) const {
  const auto sum = [&](const Net& net, const Tape& tape) {
    launch_gradients({.net = net,
                      .tape = tape,
                      .batch = plan_.config.batch,
                      .runs = plan_.runs,
                      .run = space.stride,
                      .math = plan_.math},
                     memory_.places().gradient_scratch, queue_);
  };
  for (int index = 0; index < EncoderSplit::nets; ++index) {
    OneNetwork one = encoder_network(index);
    one.tape.input = space.x;
    sum(one.net, one.tape);
  }
  sum(plan_.decoder, memory_.places().decoder_tape);
}

void Launches::iterate(const Space& space, const Space* next) const {
  const Space own = own_of(space);
  const int batch = own.batch, runs = plan_.runs;
  const RunPlaces& places = memory_.places();
  const bool alone = !plan_.around.there;  // the encoder and the objective have launches of their own
  const auto with_encoder = [&](const auto& f) {
    const Sides sides{.nets = EncoderSplit::nets,
                      .runs = runs,
                      .net_parameters = plan_.net_parameters,
                      .net_rows = static_cast<std::size_t>(space.batch),
                      .run = space.stride};
    Tape tape = places.encoder_tape;
    tape.input = own.x;
    places.encoder_path.with(plan_.encoder, space.parameters, tape, sides, queue_, f);
  };
  if (alone) {
    with_encoder([&](const auto& networks) {
      networks.prepare();
      networks.forward(batch);
    });
    launch(draw, warps_for(batch, runs), queue_, "drawing", own);
  }
  refine(space, surroundings());
  if (alone) {
    launch(ascend, warps_for(batch, runs), queue_, "the objective", own, objective());
    if (sharing_) sharing_->send_news(own);
    with_encoder([&](const auto& networks) {
      networks.backward(batch);
      networks.record(batch);
    });
  }
  if (!sharing_) {
    sum_convolutions(space);
    return launch_update(space, next, update(), runs, queue_);
  }
  sharing_->receive_news(space);
  sharing_->update(space, own, update(), [&] {
    if (next) prepare(*next);
  });
}

}  // namespace hone::cuda
