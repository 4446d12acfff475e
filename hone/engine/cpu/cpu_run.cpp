#include "hone/engine/cpu/cpu_run.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "hone/base/error.hpp"
#include "hone/base/given.hpp"
#include "hone/engine/cpu/anneal.hpp"
#include "hone/engine/cpu/evaluate.hpp"
#include "hone/engine/step_scales.hpp"
#include "hone/engine/trajectory_gradients.hpp"
#include "hone/optim/update.hpp"

namespace hone {
namespace {

// The objective's handle on a baseline that the run owns: the run still has the baseline when the objective is gone.
class KeptBaseline final : public Baseline {
 public:
  explicit KeptBaseline(std::shared_ptr<LocalBaseline> kept) : kept_(std::move(kept)) {}
  void centre(const Draws& draws, std::span<const double> value, std::span<double> centred) override {
    kept_->centre(draws, value, centred);
  }

 private:
  std::shared_ptr<LocalBaseline> kept_;
};

bool has_first(const TrainConfig& config) { return !config.own_optimizer && config.optimizer == OptimizerKind::adam; }

template <class Real>
std::span<Real> zeros(Batch<Real>& memory, std::size_t size) {
  memory.resize(row_count(size), 1);
  return {memory.view().data(), size};
}

}  // namespace

template <class Real>
CpuRun<Real>::CpuRun(const TrainConfig& config, const DataSet& train, Team& team, EngineOptions& options,
                     EngineInternals& internals)
    : config_(config),
      data_(train),
      philox_(config.seed),
      random_(options.random ? *options.random : philox_),
      minibatches_(options.minibatches ? std::move(options.minibatches)
                                       : permuted_minibatches(train.size(), config.seed)),
      observe_(std::move(internals.observe)),
      team_(team),
      ranks_(internals.ranks),
      own_(share_of(config.batch, ranks_)),
      model_(config.model, train, trajectory_gradients(config.precision), config.family),
      minibatch_(model_.minibatch(config.batch)),
      target_(model_.decoder()),
      trajectory_(model_.decoder(), model_.gradients()),
      family_(config.family, config.model.latent, config.batch, &team),
      evidence_(config.model.latent, config.batch,
                1),  // a component per datum, so that a dropped draw affects no other
      objective_(given(config.objective, "objective").clone()),
      analytic_(objective_->analytic(family_)),
      refiner_(given(config.kernel, "kernel"), config.refine, team, ranks_),
      ascent_(family_.parameters().size()),
      gradient_(zeros(arrays_[0], model_.parameters().size())),
      first_(zeros(arrays_[1], has_first(config) ? model_.parameters().size() : 0)),
      second_(zeros(arrays_[2], config.own_optimizer ? 0 : model_.parameters().size())),
      own_optimizer_(config.own_optimizer ? std::make_unique<OwnOptimizer<Real>>(*config.own_optimizer) : nullptr),
      indices_(config.batch),
      columns_(config.batch) {
  std::iota(columns_.begin(), columns_.end(), 0u);
  family_.restrict_to(own_.begin, own_.end);
  objective_->use_baselines(baselines());
  model_.draw_weights(philox_);
  pack();
  target_.set_data(minibatch_);
  trajectory_.set_data(minibatch_);
}

template <class Real>
BaselineFactory CpuRun<Real>::baselines() {
  return [this](Term term) -> std::unique_ptr<Baseline> {
    if (config_.baseline == LatentBaseline::none) return make_baseline(BaselineKind::none, 0);
    const bool local = config_.baseline == LatentBaseline::local;
    std::shared_ptr<LocalBaseline>& kept = local_[baseline_name(term)];
    if (!kept)
      kept = std::make_shared<LocalBaseline>(data_.size(), config_.baseline_decay,
                                             local ? config_.shared_until : assessment_iteration);
    return std::make_unique<KeptBaseline>(kept);
  };
}

template <class Real>
void CpuRun<Real>::step(TrainMetrics& metrics) {
  evidence_.iteration = ++iteration_;
  minibatches_->fill(iteration_, indices_);
  for (const auto& [name, baseline] : local_) baseline->select(indices_, iteration_);
  encode();
  sample();
  const int dropped = drop_outside_support(evidence_);
  if (dropped == config_.batch) throw not_finite("log p(x, z)", iteration_ - 1);
  metrics.dropped_draws += dropped;
  if (objective_->refines()) {
    const Refinement refinement = refine();
    metrics.rejected_nonfinite += refinement.nonfinite;
    if (refinement.proposals > 0) {  // some draw is inside the support
      metrics.acceptance.add(refinement.acceptance);
      metrics.vcd.add(vcd_estimate(family_, evidence_, analytic_));
    }
  }
  if (const double elbo = elbo_estimate(family_, evidence_, analytic_); !std::isnan(elbo)) metrics.elbo.add(elbo);
  std::ranges::fill(ascent_, 0.0);
  objective_->add_ascent(family_, evidence_, ascent_);
  find_gradients();
  if (observe_)
    observe_({.q = family_,
              .evidence = evidence_,
              .ascent = ascent_,
              .tensors = model_.parameters().tensors(),
              .gradient = std::span<const Real>(gradient_)});
  update();
}

template <class Real>
void CpuRun<Real>::encode() {
  for_columns([&](int begin, int end) { model_.expand(data_, indices_, begin, end, minibatch_); });
  model_.encoder().prepare(encoder_tape_, minibatch_.view());
  for_columns([&](int begin, int end) {
    model_.encoder().forward(encoder_tape_, begin, end, family_.location(), family_.scale());
  });
  family_.settle();
}

template <class Real>
void CpuRun<Real>::evaluate(const Target& target, const Matrix<double>& z, Want want, std::span<double> value,
                            MatrixView<double> gradient) {
  for_columns([&](int begin, int end) {
    const int size = end - begin;
    target.evaluate(z.view().columns(begin, end), want, value.empty() ? value : value.subspan(begin, size),
                    gradient.columns(begin, end), std::span(columns_).subspan(begin, size));
  });
}

template <class Real>
void CpuRun<Real>::sample() {
  family_.draw(random_, iteration_, evidence_.draws);
  evaluate(target_, evidence_.draws.z, Want::both, evidence_.log_p0, evidence_.grad_p0);
  if (analytic_)  // no term has ∇_z log q then
    family_.log_density(evidence_.draws.z, Want::value, evidence_.log_q0, {});
  else
    family_.log_density(evidence_.draws.z, Want::both, evidence_.log_q0, evidence_.grad_q0);
  gather_shares<double>(ranks_, evidence_.log_p0, config_.batch);
  gather_shares<double>(ranks_, evidence_.log_q0, config_.batch);
  if (analytic_) gather_shares<double>(ranks_, family_.log_normalizers(), config_.batch);
}

template <class Real>
Refinement CpuRun<Real>::refine() {
  Chains& chains = evidence_.refined;
  begin_refinement(evidence_);
  if (model_.gradients() != Gradients::exact)  // a trajectory is reversible only if one function makes all kicks
    evaluate(trajectory_, chains.z, Want::gradient, {}, chains.gradient);
  const Refinement result = config_.step_scale == StepScale::q
                                ? refine_scaled()
                                : refiner_.refine(trajectory_, chains.view(), config_.batch, iteration_, random_);
  end_refinement(evidence_);
  family_.log_density(chains.z, Want::value, evidence_.log_qt, {});
  gather_shares<double>(ranks_, chains.value, config_.batch);
  gather_shares<double>(ranks_, evidence_.log_qt, config_.batch);
  return result;
}

// In the coordinates z / s, where q is about as wide in all dimensions. s does not depend on z, so the kernel leaves
// the posterior invariant.
template <class Real>
Refinement CpuRun<Real>::refine_scaled() {
  Chains& chains = evidence_.refined;
  const std::vector<double> scales = step_scales(standard_deviations());
  const ScaledTarget target(trajectory_, scales);
  target.to_scaled(chains.z, chains.gradient);
  const Refinement result = refiner_.refine(target, chains.view(), config_.batch, iteration_, random_);
  target.from_scaled(chains.z, chains.gradient);
  return result;
}

// Of all data, other ranks' too.
template <class Real>
Matrix<double> CpuRun<Real>::standard_deviations() {
  Matrix<double> mean(config_.model.latent, config_.batch), sd(config_.model.latent, config_.batch);
  family_.moments_per_datum(mean, sd);
  gather_shares<double>(ranks_, sd.view().flat(), config_.batch);
  return sd;
}

// The model learns at the refined draws, if there are any; q learns from the objective's gradient with respect to its
// parameters.
template <class Real>
void CpuRun<Real>::find_gradients() {
  Matrix<double>& z = objective_->refines() ? evidence_.refined.z : evidence_.draws.z;
  leave_out_dropped(z);
  const AmortizedGradient ascent = family_.split(ascent_);
  model_.decoder().prepare(decoder_tape_, config_.batch);
  for_columns([&](int begin, int end) {
    model_.decoder().record({z, minibatch_, columns_}, begin, end, decoder_tape_);
    clear_dropped(begin, end);
    model_.encoder().backward(encoder_tape_, begin, end, ascent);
  });
  sum_gradients();
}

template <class Real>
void CpuRun<Real>::sum_block(int block, int blocks, SumsFrom from) {
  const int threads = team_.threads();
  team_.for_shares(threads, [&](int thread, int, int) {
    const SumPart part{.part = block * threads + thread,
                       .parts = blocks * threads,
                       .begin = own_.begin,
                       .end = own_.end,
                       .from = from};
    model_.decoder().sum_gradient(decoder_tape_, part, gradient_);
    model_.encoder().sum_gradient(encoder_tape_, part, gradient_);
  });
}

// A sum over the columns in order, as a single process computes it: each rank continues the sums of the rank before and
// passes them on. Blocks of the parameters follow each other from rank to rank, so that all ranks work at once; the
// last one has the result.
template <class Real>
void CpuRun<Real>::sum_gradients() {
  if (!ranks_) return sum_block(0, 1, SumsFrom::zero);
  constexpr std::size_t block_bytes = 1 << 17, most_blocks = 64;
  const int blocks =
      static_cast<int>(std::clamp<std::size_t>(gradient_.size() * sizeof(Real) / block_bytes, 1, most_blocks));
  const int rank = ranks_->rank(), last = ranks_->size() - 1;
  std::vector<Elements> pieces;
  for (int block = 0; block < blocks; ++block) {
    pieces.clear();
    model_.decoder().add_pieces(block, blocks, pieces);
    model_.encoder().add_pieces(block, blocks, pieces);
    std::size_t size = 0;
    for (const Elements& piece : pieces) size += piece.end - piece.begin;
    std::vector<Real>& message = message_[block % 2];
    message.resize(size);
    if (rank > 0) {
      ranks_->receive(std::as_writable_bytes(std::span(message)), rank - 1);
      auto from = message.begin();
      for (const Elements& piece : pieces) {
        std::copy_n(from, piece.end - piece.begin, gradient_.begin() + static_cast<std::ptrdiff_t>(piece.begin));
        from += static_cast<std::ptrdiff_t>(piece.end - piece.begin);
      }
    }
    sum_block(block, blocks, rank > 0 ? SumsFrom::before : SumsFrom::zero);
    if (rank == last) continue;
    auto to = message.begin();
    for (const Elements& piece : pieces)
      to = std::copy(gradient_.begin() + static_cast<std::ptrdiff_t>(piece.begin),
                     gradient_.begin() + static_cast<std::ptrdiff_t>(piece.end), to);
    ranks_->send(std::as_bytes(std::span(message)), rank + 1);
  }
  ranks_->broadcast(std::as_writable_bytes(std::span(gradient_)), last, Patience::limited);
}

// A dropped draw must not move the model either: its column gets a point where the decoder is finite, and then zero
// deltas.
template <class Real>
void CpuRun<Real>::leave_out_dropped(Matrix<double>& z) {
  for (int c = 0; c < z.cols(); ++c)
    if (evidence_.draws.weight[c] == 0) std::ranges::fill(z.column(c), 0.0);
}

template <class Real>
void CpuRun<Real>::clear_dropped(int begin, int end) {
  for (int c = begin; c < end; ++c)
    if (evidence_.draws.weight[c] == 0)
      for (auto& delta : decoder_tape_.delta) std::fill_n(delta.view().column(c), delta.rows(), Real(0));
}

template <class Real>
double CpuRun<Real>::rate_of(const Tensor& tensor) const {
  if (tensor.name.starts_with("decoder.")) return config_.rate_model;
  const double rate = tensor.name.starts_with("mean.") ? config_.rate_mean : config_.rate_scale;
  return tensor.name.ends_with(".weight[0]") ? rate / model_.input_scale() : rate;
}

template <class Real>
void CpuRun<Real>::update() {
  const double decayed =
      config_.warmup.at(iteration_) * decay_factor(config_.rate_decay, config_.decay_every, iteration_);
  const std::span<Real> theta = model_.parameters().values();
  const bool sound = own_optimizer_
                         ? own_optimizer_->step({.tensors = model_.parameters().tensors(),
                                                 .rate = [&](const Tensor& t) { return decayed * rate_of(t); },
                                                 .gradient = gradient_,
                                                 .theta = theta,
                                                 .iteration = iteration_})
                         : move(theta, decayed);
  if (!sound) throw not_finite("a parameter", iteration_);
  pack();
}

// One step of the library's optimizer; returns whether all parameters are finite afterwards.
template <class Real>
bool CpuRun<Real>::move(std::span<Real> theta, double decayed) {
  const AdamCorrection correction(iteration_);
  std::atomic<bool> finite = true;
  team_.for_shares(static_cast<int>(theta.size()), [&](int begin, int end, int) {
    for (const Tensor& tensor : model_.parameters().tensors()) {
      const Elements range{std::max(static_cast<std::size_t>(begin), tensor.offset),
                           std::min(static_cast<std::size_t>(end), tensor.offset + tensor.size())};
      if (range.begin >= range.end) continue;
      const Real rate = static_cast<Real>(decayed * rate_of(tensor));
      const UpdateArrays<Real> arrays{.gradient = gradient_, .first = first_, .second = second_, .theta = theta};
      const bool sound = config_.optimizer == OptimizerKind::rmsprop
                             ? rmsprop_update(range, rate, iteration_ == 1, arrays)
                             : adam_update(range, rate, correction, arrays);
      if (!sound) finite = false;
    }
  });
  return finite;
}

// Every thread packs the same part each time: its memory stays near it.
template <class Real>
void CpuRun<Real>::pack() {
  team_.for_shares(team_.threads(), [&](int part, int, int) { model_.pack(part, team_.threads()); });
}

template <class Real>
std::vector<PointEvaluation> CpuRun<Real>::evaluate(const DataSet& data, const EvaluationConfig& config,
                                                    const std::function<void(int)>& progress) {
  return evaluate_points(model_, data, config, {*config_.kernel, step_size(), config_.refine.acceptance}, random_,
                         {team_, ranks_}, progress);
}

template <class Real>
std::vector<AnnealedPoint> CpuRun<Real>::anneal(const DataSet& data, const AnnealingTask& task,
                                                const std::function<void(int)>& progress) {
  return anneal_points(model_, data, task, random_, {team_, ranks_}, progress);
}

template <class Real>
TrainedParameters<Real> CpuRun<Real>::trained() const {  // saving reads them, restoring writes them
  auto& self = const_cast<CpuRun&>(*this);
  return {.tensors = model_.parameters().tensors(),
          .values = self.model_.parameters().values(),
          .first = self.first_,
          .second = self.second_};
}

template <class Real>
TrainState CpuRun<Real>::save() const {
  TrainState state{iteration_, refiner_.step_size(), {}};
  add_parameters<Real>(state, trained());
  if (own_optimizer_) own_optimizer_->save(state);
  for (const auto& [name, baseline] : local_) add_array(state, name, baseline->values());
  return state;
}

template <class Real>
void CpuRun<Real>::restore(const TrainState& state) {
  take_parameters<Real>(state, trained());
  if (own_optimizer_) own_optimizer_->restore(state);
  for (const auto& [name, baseline] : local_) take_array(state, name, baseline->values());
  iteration_ = state.iteration;
  refiner_.set_step_size(state.step_size);
  pack();
}

template class CpuRun<float>;
template class CpuRun<double>;

}  // namespace hone
