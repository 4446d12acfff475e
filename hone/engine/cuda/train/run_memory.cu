#include "hone/engine/cuda/train/run_memory.cuh"

#include <algorithm>

#include "hone/latent/likelihoods.hpp"

namespace hone::cuda {
namespace {

// Takes a run's arrays from an arena, which may only count.
class Placing {
 public:
  Placing(const TrainPlan& plan, Arena arena)
      : plan_(plan), arena_(arena), batch_(plan.config.batch), points_(batch_ * plan.config.model.latent) {}

  RunPlaces places() {
    RunPlaces places;
    places.encoder_path = ProductPath(plan_.math, false);
    places.decoder_path = ProductPath(plan_.math, plan_.halves());
    Space& s = places.space;
    place_state(s);
    place_iteration(s);
    s.packed = arena_.take<uint4>(plan_.refinement ? plan_.refinement->packed : 0);
    place_baselines(s);
    s.chains.place(arena_, s.batch, s.latent, s.ld_latent, Comparison::parts(plan_.decoder.outputs()));
    s.chains.constant = s.constant;
    const auto take = [&](std::size_t bytes) { return arena_.take<char>(bytes); };
    if (!plan_.refinement)
      places.decoder_path.take_scratch(plan_.decoder, {.rows = batch_, .compares = true, .gradients = true}, take);
    if (!plan_.around.there)
      places.encoder_path.take_scratch(plan_.encoder, {.rows = batch_, .nets = EncoderSplit::nets, .gradients = true},
                                       take);
    place_tapes(places);
    s.stride = s.chains.run = arena_.used() / 4;
    return places;
  }

 private:
  void place_state(Space& s) {
    s.batch = plan_.config.batch;
    s.latent = plan_.config.model.latent;
    s.ld_latent = padded_width(s.latent);
    s.ld_pixels = padded_width(plan_.pixels);
    s.data = plan_.data;
    s.steps = plan_.config.refine.steps;
    s.state = arena_.take<RunState>(1);
    s.indices = arena_.take<int>((chunk + 1) * batch_);
    s.metrics = arena_.take<MetricsRow>(chunk);
    const std::size_t size = plan_.padded.size;
    s.parameters = arena_.take<float>(size);
    s.second = arena_.take<float>(size);
    s.first = plan_.config.optimizer == OptimizerKind::adam ? arena_.take<float>(size) : nullptr;
    s.alive = arena_.take<int>(batch_);
    for (double** p : {&s.mean, &s.sd, &s.z0, &s.grad_p0}) *p = arena_.take<double>(points_);
    s.log_p0 = arena_.take<double>(batch_);
    s.values = arena_.take<double>(4 * batch_);
  }

  // What is prepared before an iteration, twice.
  void place_iteration(Space& s) {
    const std::size_t before = arena_.used(), drawn = plan_.refines() ? static_cast<std::size_t>(s.steps) : 0;
    s.now = arena_.take<IterationState>(1);
    s.x = arena_.take<float>(batch_ * s.ld_pixels);
    s.datum = arena_.take<int>(batch_);
    s.following = arena_.take<int>(batch_);
    s.constant = arena_.take<double>(batch_);
    s.noise = arena_.take<double>(points_);
    s.meeting = arena_.take<unsigned long long>(s.steps);
    s.drawn_momentum = arena_.take<double>(drawn * points_);
    s.drawn_log_uniform = arena_.take<double>(drawn * batch_);
    s.drawn_length = arena_.take<int>(drawn * batch_);
    s.slot = (arena_.used() - before) / 4;
    arena_.take<float>(s.slot);  // the second
  }

  void place_baselines(Space& s) {
    const ObjectiveTerms terms = plan_.config.objective->terms().value();
    const bool wanted[2] = {terms.score_first(), terms.start_score};
    for (int term = 0; term < 2; ++term)
      if (wanted[term] && plan_.config.baseline != LatentBaseline::none)
        s.baseline[term] = arena_.take<double>(plan_.data);
  }

  void place_tapes(RunPlaces& places) {
    Space& s = places.space;
    places.decoder_tape = tape_of(plan_.decoder, s.chains.input, s.ld_latent, 1);
    places.encoder_tape = tape_of(plan_.encoder, nullptr, s.ld_pixels, EncoderSplit::nets);
    const std::size_t of_part = EncoderSplit::nets * batch_ * plan_.encoder.layer[0].ld;
    places.first_sums = {plan_.first_parts, arena_.take<float>(plan_.first_parts * of_part), of_part};
    place_gradients(places);
    const int last = plan_.encoder.depth - 1;
    s.raw_mean = places.encoder_tape.value[last];
    s.raw_sd = s.raw_mean + batch_ * s.ld_latent;
    s.delta_mean = places.encoder_tape.delta[last];
    s.delta_sd = s.delta_mean + batch_ * s.ld_latent;
  }

  void place_gradients(RunPlaces& places) {
    if (!plan_.encoder.convolves()) return;  // nor does the decoder
    places.decoder_tape.gradient = places.encoder_tape.gradient = arena_.take<float>(plan_.padded.size);
    GradientScratch& scratch = places.gradient_scratch;
    for (const Net* net : {&plan_.encoder, &plan_.decoder}) scratch.cover(*net, plan_.config.batch);
    scratch.numbers = arena_.take<float>(scratch.size);
  }

  Tape tape_of(const Net& net, const float* input, int ld_input, int copies) {
    Tape tape = {input, ld_input, {}, {}};
    for (int l = 0; l < net.depth; ++l) {
      const std::size_t size = copies * batch_ * net.layer[l].ld;
      tape.value[l] = arena_.take<float>(size);
      tape.delta[l] = arena_.take<float>(size);
    }
    return tape;
  }

  const TrainPlan& plan_;
  Arena arena_;
  std::size_t batch_, points_;
};

}  // namespace

PointData load_points(const Model<float>& model, const DataSet& data, int begin, int count, int ld) {
  PointData points{std::vector<float>(static_cast<std::size_t>(count) * ld), std::vector<double>(count)};
  Minibatch<float> one = model.minibatch(1);
  for (int i = 0; i < count; ++i) {
    const int n = begin + i;
    model.expand(data, std::span<const int>(&n, 1), 0, 1, one);
    std::copy_n(one.view().column(0), data.dimension(), &points.x[static_cast<std::size_t>(i) * ld]);
    points.constant[i] = one.constant(0);
  }
  return points;
}

RunMemory::RunMemory(const TrainPlan& plan, const Model<float>& model, const DataSet& train,
                     const std::vector<std::uint64_t>& seeds)
    : plan_(plan), seeds_(seeds) {
  memory_ = Memory<char>(4 * Placing(plan, Arena()).places().space.stride * seeds.size());
  places_ = Placing(plan, Arena(memory_.data())).places();
  const LikelihoodFacts facts = facts_of(plan.config.model.density());
  if (const BitRows* bits = train.bits(); bits && !facts.centred) {
    std::vector<std::uint64_t> words;
    for (int n = 0; n < train.size(); ++n) words.insert(words.end(), bits->row(n).begin(), bits->row(n).end());
    bits_ = Memory<std::uint64_t>(words);
    return;
  }
  const PointData all = load_points(model, train, 0, train.size(), train.dimension());
  values_ = Memory<float>(all.x);
  if (facts.counts) constants_ = Memory<double>(all.constant);
}

DataView RunMemory::data() const {
  return {.bits = bits_.data(),
          .values = values_.data(),
          .constant = constants_.data(),
          .words = ceil_div(plan_.pixels, 64),
          .pixels = plan_.pixels};
}

StepSizeArrays RunMemory::step_sizes() const {
  const RefineConfig& refine = plan_.config.refine;
  return {.step_size = &space().state->step_size,
          .rule = {refine.step_size, refine.acceptance, refine.gain},
          .group = plan_.config.batch,
          .run = space().stride};
}

void RunMemory::upload(float* to, int run, std::span<const float> values) {
  check(cudaMemset(of(to, run), 0, 4 * plan_.padded.size), "clearing parameters");
  for (const PaddedTensor& t : plan_.padded.all)
    check(cudaMemcpy2D(of(to, run) + t.begin, 4 * padded_width(t.cols), &values[t.offset], 4 * t.cols, 4 * t.cols,
                       t.rows, cudaMemcpyHostToDevice),
          "copying parameters");
  check(cudaStreamSynchronize(nullptr), "copying parameters");  // as `copy_to`
}

void RunMemory::download(const float* from, int run, std::span<float> values) const {
  for (const PaddedTensor& t : plan_.padded.all)
    check(cudaMemcpy2D(&values[t.offset], 4 * t.cols, of(from, run) + t.begin, 4 * padded_width(t.cols), 4 * t.cols,
                       t.rows, cudaMemcpyDeviceToHost),
          "reading parameters");
}

}  // namespace hone::cuda
