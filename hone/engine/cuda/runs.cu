#include "hone/engine/cuda/runs.cuh"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/engine/train_state.hpp"

namespace hone::cuda {
namespace {

constexpr std::uint32_t chunk = 1024;                   // iterations whose minibatches and figures lie on the device
constexpr Term terms[2] = {Term::first, Term::second};  // of which each may have a control variate
constexpr std::uint32_t at_once = 32;                   // in one graph: between graphs the device waits

}  // namespace

Runs::Runs(const TrainConfig& config, const DataSet& train, std::vector<std::uint64_t> seeds, const PathOptions& path)
    : config_(config),
      data_(train),
      seeds_(std::move(seeds)),
      model_(config, train),
      padded_(model_.parameters().tensors()),
      math_(config.precision == Precision::float32 ? Math::fp32 : Math::tf32),
      decoder_net_(net_of("decoder", config.model.latent, config.model.hidden, train.dimension())),
      mean_net_(net_of("mean", train.dimension(), config.model.encoder_hidden, config.model.latent)),
      encoder_path_(math_, false),
      decoder_path_(math_, suits_halves(decoder_net_, config.model.density(), math_)),
      net_parameters_(padded_.offset("sd.weight[0]") - padded_.offset("mean.weight[0]")),
      step_size_(seeds_.size(), config.refine.step_size),
      failure_(seeds_.size()) {
  plan_refinement(path);
  constexpr int many_rows = 1024;  // which products make faster (measured with earlier ones)
  takes_encoder_ = path.kind != PathKind::all_products && config.batch < many_rows &&
                   takes_encoder(mean_net_, config.model.latent, math_);
  if (takes_encoder_ && data_.bits())
    first_sums_.parts = ceil_div(ceil_div(mean_net_.inputs(), 64), FirstLayerSums::words);
  encoder_products_ = mean_net_;
  if (takes_encoder_) encoder_products_.depth = first_sums_.parts == 0 ? 1 : 0;
  for (const std::uint64_t seed : seeds_) minibatches_.push_back(permuted_minibatches(train.size(), seed));
  Arena count(nullptr);
  place(count);
  memory_ = Memory<char>(4 * space_.stride * seeds_.size());
  place(Arena(memory_.data()));
  seed_memory_ = Memory<std::uint64_t>(std::span<const std::uint64_t>(seeds_));
  upload_data();
  for (int run = 0; run < this->count(); ++run) {
    model_.initialize(PhiloxSource(seeds_[run]));
    upload_parameters(run);
    RunState state = {};
    state.step_size = config.refine.step_size;
    set_state(run, state);
  }
  if (plan_ && takes_encoder_) around_ = plan_surroundings(*plan_, encoder(), objective(), config.model.latent);
  path_ += around_.there    ? "; encoder and objective in the same kernel"
           : takes_encoder_ ? "; encoder by kernels of its own"
                            : "; encoder product by product";
  make_tasks();
  graph_ = captured(1);
  if (plan_) several_ = captured(at_once);  // by products an iteration has hundreds of kernels
}

Runs::~Runs() {
  for (cudaGraphExec_t graph : {graph_, several_})
    if (graph) cudaGraphExecDestroy(graph);
}

Net Runs::net_of(const std::string& name, int inputs, const std::vector<int>& hidden, int outputs) const {
  Net net;
  net.activation = config_.model.activation;
  net.depth = static_cast<int>(hidden.size()) + 1;
  if (net.depth > max_layers)
    throw InputError("the cuda engine takes networks of at most " + std::to_string(max_layers - 1) + " hidden layers");
  for (int l = 0; l < net.depth; ++l) {
    const int units = l + 1 < net.depth ? hidden[l] : outputs;
    const std::string index = "[" + std::to_string(l) + "]";
    const std::size_t bias = padded_.offset(name + ".bias" + index);
    net.layer[l] = {inputs,
                    units,
                    padded_width(units),
                    padded_.offset(name + ".weight" + index),
                    bias == PaddedParameters::npos ? 0 : bias,
                    bias != PaddedParameters::npos};
    inputs = units;
  }
  return net;
}

Tape Runs::tape_of(Arena& arena, const Net& net, const float* input, int ld_input, int copies) const {
  Tape tape = {input, ld_input, {}, {}};
  for (int l = 0; l < net.depth; ++l) {
    const std::size_t size = static_cast<std::size_t>(copies) * config_.batch * net.layer[l].ld;
    tape.value[l] = arena.take<float>(size);
    tape.delta[l] = arena.take<float>(size);
  }
  return tape;
}

void Runs::place(Arena arena) {
  const int batch = config_.batch, latent = config_.model.latent;
  const auto points = static_cast<std::size_t>(batch) * static_cast<std::size_t>(latent);
  Space& s = space_;
  s.batch = batch;
  s.latent = latent;
  s.ld_latent = padded_width(latent);
  s.ld_pixels = padded_width(data_.dimension());
  s.data = data_.size();
  s.steps = config_.refine.steps;
  s.state = arena.take<RunState>(1);
  s.indices = arena.take<int>(static_cast<std::size_t>(chunk + 1) * batch);
  s.metrics = arena.take<MetricsRow>(chunk);
  s.parameters = arena.take<float>(padded_.size());
  s.second = arena.take<float>(padded_.size());
  s.first = config_.optimizer == OptimizerKind::adam ? arena.take<float>(padded_.size()) : nullptr;
  s.alive = arena.take<int>(batch);
  for (double** p : {&s.mean, &s.sd, &s.z0, &s.grad_p0}) *p = arena.take<double>(points);
  s.log_p0 = arena.take<double>(batch);
  s.figures = arena.take<double>(4 * static_cast<std::size_t>(batch));
  const std::size_t before = arena.used(), drawn = refines() ? static_cast<std::size_t>(s.steps) : 0;
  s.now = arena.take<IterationState>(1);
  s.x = arena.take<float>(static_cast<std::size_t>(batch) * s.ld_pixels);
  s.datum = arena.take<int>(batch);
  s.following = arena.take<int>(batch);
  s.constant = arena.take<double>(batch);
  s.noise = arena.take<double>(points);
  s.meeting = arena.take<unsigned long long>(s.steps);
  s.drawn_momentum = arena.take<double>(drawn * points);
  s.drawn_log_uniform = arena.take<double>(drawn * batch);
  s.drawn_length = arena.take<int>(drawn * batch);
  s.slot = (arena.used() - before) / 4;
  arena.take<float>(s.slot);  // the second
  s.packed = arena.take<uint4>(std::max(packed_size(decoder_net_), streamed_size(decoder_net_)));
  const bool first =
      config_.objective.first_term == FirstTerm::score && config_.objective.kind != ObjectiveKind::li2017;
  const bool second = config_.objective.kind == ObjectiveKind::vcd && config_.objective.estimator == Estimator::full;
  const bool any = config_.baseline != LatentBaseline::none;
  s.baseline[0] = any && first ? arena.take<double>(s.data) : nullptr;
  s.baseline[1] = any && second ? arena.take<double>(s.data) : nullptr;

  ChainArrays& c = s.chains;
  c.count = batch;
  c.latent = latent;
  c.ld = s.ld_latent;
  for (double** p : {&c.z, &c.gradient, &c.position, &c.momentum, &c.slope}) *p = arena.take<double>(points);
  for (double** p : {&c.value, &c.proposed, &c.energy, &c.acceptance}) *p = arena.take<double>(batch);
  for (int** p : {&c.length, &c.outcome, &c.proposals, &c.nonfinite}) *p = arena.take<int>(batch);
  c.input = arena.take<float>(static_cast<std::size_t>(batch) * s.ld_latent);
  c.answer = arena.take<float>(static_cast<std::size_t>(batch) * s.ld_latent);
  const auto take = [&](std::size_t bytes) { return arena.take<char>(bytes); };
  if (!plan_) decoder_path_.take_room(decoder_net_, batch, 1, true, true, take);
  if (encoder_products_.depth > 0)
    encoder_path_.take_room(encoder_products_, batch, EncoderSplit::nets, false, !takes_encoder_, take);
  c.parts = Comparison::parts(data_.dimension());
  c.partial = arena.take<float>(static_cast<std::size_t>(c.parts) * batch);
  c.constant = s.constant;

  decoder_tape_ = tape_of(arena, decoder_net_, c.input, s.ld_latent, 1);
  encoder_tape_ = tape_of(arena, mean_net_, nullptr, s.ld_pixels, 2);  // its input is the minibatch, of either slot
  first_sums_.sums = arena.take<float>(static_cast<std::size_t>(first_sums_.parts) * EncoderSplit::nets * batch *
                                       mean_net_.layer[0].ld);
  const int last = mean_net_.depth - 1;
  const std::size_t half = static_cast<std::size_t>(batch) * s.ld_latent;
  s.raw_mean = encoder_tape_.value[last];
  s.raw_sd = s.raw_mean + half;
  s.delta_mean = encoder_tape_.delta[last];
  s.delta_sd = s.delta_mean + half;
  s.stride = arena.used() / 4;
  c.run = s.stride;
}

void Runs::upload_data() {
  if (const BitRows* bits = data_.bits()) {
    std::vector<std::uint64_t> words;
    for (int n = 0; n < data_.size(); ++n) words.insert(words.end(), bits->row(n).begin(), bits->row(n).end());
    bits_ = Memory<std::uint64_t>(std::span<const std::uint64_t>(words));
    return;
  }
  std::vector<float> values;
  std::vector<double> constants;
  Minibatch<float> one = model_.minibatch(1);
  for (int n = 0; n < data_.size(); ++n) {
    model_.expand(data_, std::span<const int>(&n, 1), 0, 1, one);
    const float* column = one.view().column(0);
    values.insert(values.end(), column, column + data_.dimension());
    constants.push_back(one.constant(0));
  }
  values_ = Memory<float>(std::span<const float>(values));
  if (config_.model.density() == Density::poisson) constants_ = Memory<double>(std::span<const double>(constants));
}

void Runs::upload_parameters(int run) {
  const std::vector<float> padded = padded_.padded(model_.parameters().values());
  copy_to(of(space_.parameters, run), padded, "copying parameters");
}

RunState Runs::state_of(int run) const { return copy_of(of(space_.state, run), 1, "reading a run's state").front(); }

void Runs::set_state(int run, const RunState& state) {
  copy_to(of(space_.state, run), std::span(&state, 1), "writing a run's state");
}

void Runs::refine_by_products(const Space& space) {
  const Sides sides{1, count(), 0, 0, static_cast<std::size_t>(config_.batch), space.stride};
  decoder_path_.with(decoder_net_, space.parameters, decoder_tape_, sides, queue_,
                     [&](const auto& decoder) { refine_by(decoder, space); });
}

template <class N>
void Runs::refine_by(const N& decoder, const Space& space) {
  const ChainArrays& chains = space.chains;
  const int batch = config_.batch, runs = count();
  const Density density = config_.model.density();
  const HmcShape shape = hmc_shape();
  const Numbers numbers{seed_memory_.data(), &space.now->iteration, 0, 0};
  const StepSizeArrays sizes = step_sizes();
  const auto gradient = [&](bool value) {
    decoder.compute_gradient(
        batch,
        {density, space.x, space.ld_pixels, 1, nullptr, value ? const_cast<float*>(chains.partial) : nullptr, true},
        chains.answer, chains.ld);
  };
  decoder.prepare();
  gradient(true);
  launch_begin(chains, runs, queue_);
  launch_settle(space, runs, queue_);
  const int steps = refines() ? config_.refine.steps : 0;
  for (int step = 0; step < steps; ++step) {
    launch_start(chains, numbers, sizes, shape, static_cast<std::uint32_t>(step), runs, queue_);
    for (int leap = 1; leap <= shape.leapfrog + shape.jitter; ++leap) {
      gradient(leap >= shape.leapfrog - shape.jitter);
      launch_leap(chains, sizes, leap, runs, queue_);
    }
    launch_accept(chains, numbers, sizes, static_cast<std::uint32_t>(step),
                  config_.refine.adapt == Adapt::inside && step < config_.refine.adapting_steps(), runs, queue_);
  }
  launch_refined_input(space, runs, queue_);
  decoder.compare(batch, {density, space.x, space.ld_pixels, 1, space.alive, nullptr, true});
  decoder.backward(batch);
  decoder.record(batch);
}

ObjectiveSpec Runs::objective() const {
  return {config_.objective, config_.objective.entropy != Entropy::sampled,
          config_.baseline == LatentBaseline::local ? config_.shared_until : assessment_iteration, config_.refine.adapt,
          step_sizes()};
}

void Runs::launch_refinement(const Space& space, const Surroundings& around) {
  if (!plan_) return refine_by_products(space);
  if (plan_->weights == WeightPlace::streamed) launch_pack_streamed(space, decoder_net_, count(), queue_);
  const TrajectorySpec spec{decoder_net_,
                            config_.model.density(),
                            decoder_tape_,
                            hmc_shape(),
                            refines() ? config_.refine.steps : 0,
                            config_.refine.adapting_steps(),
                            config_.refine.adapt,
                            step_sizes(),
                            *plan_,
                            ceil_div(config_.batch, plan_->chains),
                            around,
                            team_memory_.data()};
  if (plan_->weights == WeightPlace::cache) launch_pack_team(space, spec, math_, count(), queue_);
  for (int run = 0; run < count(); run += wave_)
    launch_trajectory(space, spec, math_, run, std::min(wave_, count() - run), queue_);
}

// An iteration that is prepared in `space`; it prepares the one that follows it in `next`, if any.
void Runs::capture_iteration(const Space& space, const Space* next) {
  const int batch = config_.batch, runs = count();
  const auto with_encoder = [&](const auto& f) {
    const Sides sides{EncoderSplit::nets, runs, net_parameters_, 0, static_cast<std::size_t>(batch), space.stride};
    Tape tape = encoder_tape_;
    tape.input = space.x;
    encoder_path_.with(encoder_products_, space.parameters, tape, sides, queue_, f);
  };
  if (!takes_encoder_) {
    with_encoder([&](const auto& networks) {
      networks.prepare();
      networks.forward(batch);
    });
    launch_draw(space, runs, queue_);
  } else {
    if (encoder_products_.depth > 0) with_encoder([&](const auto& networks) { networks.forward_first(batch); });
    if (!around_.there) launch_encode(space, encoder(), math_, runs, queue_);
  }
  launch_refinement(space, around_);
  if (!takes_encoder_) {
    launch_ascend(space, objective(), runs, queue_);
    with_encoder([&](const auto& networks) {
      networks.backward(batch);
      networks.record(batch);
    });
  } else if (!around_.there) {
    launch_ascend_back(space, objective(), encoder(), math_, runs, queue_);
  }
  launch_update(space, next, update_spec(), runs, queue_);
}

cudaGraphExec_t Runs::captured(int iterations) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(queue_, cudaStreamCaptureModeThreadLocal), "recording an iteration");
  const Space slots[2] = {space_.of_slot(0), space_.of_slot(1)};
  launch_prepare(slots[0], update_spec(), count(), queue_);
  for (int i = 0; i < iterations; ++i)
    capture_iteration(slots[i % 2], i + 1 < iterations ? &slots[(i + 1) % 2] : nullptr);
  check(cudaStreamEndCapture(queue_, &graph), "recording an iteration");
  const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check(made, "preparing an iteration");
  return executable;
}

void Runs::train(std::uint32_t iterations, std::span<TrainMetrics> metrics) {
  const bool local = config_.baseline == LatentBaseline::local;
  const auto size_of_chunk = [&](std::uint32_t made, std::uint32_t left) {
    const bool shared = local && made < config_.shared_until;
    return std::min({left, chunk, shared ? config_.shared_until - made : left});
  };
  const std::uint32_t usual = iterations;  // as many will be wanted next time, perhaps
  while (iterations > 0) {
    if (local && iteration_ == config_.shared_until) launch_spread_baselines(space_, this->count(), queue_);
    const std::uint32_t count = size_of_chunk(iteration_, iterations);
    iterations -= count;
    train_chunk(count, size_of_chunk(iteration_ + count, iterations > 0 ? iterations : usual), metrics);
  }
}

void Runs::train_chunk(std::uint32_t count, std::uint32_t next, std::span<TrainMetrics> metrics) {
  const std::uint32_t first = iteration_ + 1;
  const std::size_t size = static_cast<std::size_t>(count) * config_.batch;
  const std::vector<int>& indices = minibatches_from(first, count);
  for (int run = 0; run < this->count(); ++run) {
    check(cudaMemcpyAsync(const_cast<int*>(of(space_.indices, run)), indices.data() + run * size, size * sizeof(int),
                          cudaMemcpyHostToDevice, queue_),
          "copying minibatches");
    start_at(run, first);
  }
  std::uint32_t left = count;
  for (; several_ && left >= at_once; left -= at_once) check(cudaGraphLaunch(several_, queue_), "starting iterations");
  for (; left > 0; --left) check(cudaGraphLaunch(graph_, queue_), "starting an iteration");
  minibatches_from(first + count, next);
  queue_.wait();
  iteration_ += count;
  add_metrics(count, metrics);
}

const std::vector<int>& Runs::minibatches_from(std::uint32_t first, std::uint32_t count) {
  if (ahead_.first == first && ahead_.count == count) return ahead_.indices;
  const std::size_t batch = config_.batch;
  ahead_.first = first;
  ahead_.count = count;
  ahead_.indices.resize(seeds_.size() * count * batch);
  for (std::size_t run = 0; run < seeds_.size(); ++run)
    for (std::size_t i = 0; i < count; ++i)
      minibatches_[run]->fill(first + static_cast<std::uint32_t>(i),
                              std::span(ahead_.indices).subspan((run * count + i) * batch, batch));
  return ahead_.indices;
}

// The next iteration, whose minibatch is the first of those on the device.
void Runs::start_at(int run, std::uint32_t iteration) {
  const std::uint32_t words[2] = {iteration, iteration};  // next, chunk_first
  check(cudaMemcpyAsync(&of(space_.state, run)->next, words, sizeof words, cudaMemcpyHostToDevice, queue_),
        "copying minibatches");
  queue_.wait();
}

void Runs::add_metrics(std::uint32_t count, std::span<TrainMetrics> metrics) {
  for (int run = 0; run < this->count(); ++run)
    if (failure_[run].empty())
      failure_[run] = add_metrics(run, copy_of(of(space_.metrics, run), count, "reading figures"), metrics[run]);
}

std::string Runs::add_metrics(int run, std::span<const MetricsRow> rows, TrainMetrics& m) {
  const RunState state = state_of(run);
  step_size_[run] = state.step_size;
  std::uint32_t made = iteration_ - static_cast<std::uint32_t>(rows.size());
  for (const MetricsRow& row : rows) {
    if (state.bad != 0 && state.bad <= made) break;
    if (row.dropped == config_.batch) return not_finite("log p(x, z)", made).what();
    m.dropped_draws += row.dropped;
    m.rejected_nonfinite += row.nonfinite;
    if (row.refined && row.proposals > 0) {
      m.acceptance.add(row.acceptance / row.proposals);
      m.vcd.add(row.vcd);
    }
    if (!std::isnan(row.elbo)) m.elbo.add(row.elbo);
    ++made;
  }
  return state.bad != 0 ? not_finite("a parameter", state.bad).what() : "";
}

SimulatedData Runs::simulate(int run, int count) const {
  save(run);  // brings the parameters to the host
  model_.pack(0, 1);
  return model_.simulate(PhiloxSource(seeds_[run]), count);
}

TrainState Runs::save(int run) const {
  TrainState state{iteration_, step_size_[run], {}};
  const auto download = [&](const float* from, std::span<float> to) {
    padded_.unpad(copy_of(of(from, run), padded_.size(), "reading parameters"), to);
  };
  const std::size_t size = model_.parameters().size();
  std::vector<float> first(space_.first ? size : 0), second(size);
  download(space_.parameters, model_.parameters().values());
  download(space_.second, second);
  if (space_.first) download(space_.first, first);
  add_parameters<float>(state, {model_.parameters().tensors(), model_.parameters().values(), first, second});
  const RunState device = state_of(run);
  const bool shared = config_.baseline == LatentBaseline::global || iteration_ <= config_.shared_until;
  for (int term = 0; term < 2; ++term) {
    if (!space_.baseline[term]) continue;
    std::vector<double> values(space_.data, device.shared[term]);
    if (!shared) values = copy_of(of(space_.baseline[term], run), values.size(), "reading control variates");
    add_array(state, baseline_name(terms[term]), values);
  }
  return state;
}

void Runs::restore(int run, const TrainState& state) {
  const std::size_t size = model_.parameters().size();
  std::vector<float> first(space_.first ? size : 0), second(size);
  take_parameters<float>(state, {model_.parameters().tensors(), model_.parameters().values(), first, second});
  RunState device = {};
  device.step_size = state.step_size;
  for (int term = 0; term < 2; ++term) {
    if (!space_.baseline[term]) continue;
    std::vector<double> values(space_.data);
    take_array(state, baseline_name(terms[term]), values);
    device.shared[term] = values.front();
    copy_to(of(space_.baseline[term], run), values, "copying control variates");
  }
  upload_parameters(run);
  const auto upload = [&](float* to, std::span<const float> values) {
    copy_to(of(to, run), padded_.padded(values), "copying moments");
  };
  upload(space_.second, second);
  if (space_.first) upload(space_.first, first);
  iteration_ = state.iteration;
  step_size_[run] = state.step_size;
  failure_[run].clear();
  set_state(run, device);
}

Runs::Probe Runs::probe(int run) const {
  const auto read = [&](const double* from, std::size_t count) { return copy_of(of(from, run), count, "reading"); };
  const std::size_t batch = config_.batch, points = batch * static_cast<std::size_t>(config_.model.latent);
  const ChainArrays& c = space_.chains;
  return {read(space_.mean, points),    read(space_.sd, points), read(space_.z0, points), read(space_.log_p0, batch),
          read(space_.grad_p0, points), read(c.z, points),       read(c.value, batch),    read(c.acceptance, batch)};
}

Runs::Probe Runs::refine(std::uint32_t iteration, int first, std::span<const double> points,
                         const std::function<void(DrawnNumbers&)>& plant) {
  const std::size_t batch = config_.batch;
  if (count() != 1 || first < 0 || first + config_.batch > data_.size() || points.size() != batch * space_.latent)
    throw InputError("a refinement alone is made with one run, data that are there and a point for each");
  if (plant && !(plan_ && refines()))
    throw InputError("random numbers can be changed where one kernel makes a refinement");
  std::vector<int> indices(batch);
  std::iota(indices.begin(), indices.end(), first);
  copy_to(const_cast<int*>(space_.indices), indices, "copying a minibatch");
  start_at(0, iteration);
  launch_prepare(space_, update_spec(), count(), queue_);
  queue_.wait();
  copy_to(space_.z0, points, "copying points");
  copy_to(space_.chains.z, points, "copying points");
  launch_place(space_.chains, count(), queue_);
  if (plant) {
    const std::size_t draws = space_.steps * batch;
    DrawnNumbers numbers{copy_of(space_.drawn_momentum, draws * space_.latent, "reading momenta"),
                         copy_of(space_.drawn_log_uniform, draws, "reading uniforms")};
    plant(numbers);
    copy_to(space_.drawn_momentum, numbers.momentum, "copying momenta");
    copy_to(space_.drawn_log_uniform, numbers.log_uniform, "copying uniforms");
  }
  launch_refinement(space_, {});
  queue_.wait();
  return probe(0);
}

}  // namespace hone::cuda
