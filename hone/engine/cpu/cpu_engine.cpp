#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "hone/base/error.hpp"
#include "hone/base/parallel.hpp"
#include "hone/engine/cpu/anneal.hpp"
#include "hone/engine/cpu/evaluate.hpp"
#include "hone/engine/cpu/iteration.hpp"
#include "hone/engine/cpu/model.hpp"
#include "hone/engine/train_state.hpp"
#include "hone/latent/amortized_family.hpp"
#include "hone/latent/latent_target.hpp"
#include "hone/objective/local_baseline.hpp"

namespace hone {
namespace {

// The readable reference: an iteration is composed of the rooms above. Threads share out the columns of the minibatch,
// and then the elements of the parameters; every sum has an order that does not depend on their number.
template <class Real>
class CpuEngine final : public Engine {
 public:
  CpuEngine(const TrainConfig& config, const DataSet& train, EngineOptions options);

  std::uint32_t iteration() const override { return iteration_; }
  double step_size() const override { return refiner_.step_size(); }
  void train(std::uint32_t iterations, TrainMetrics& metrics) override;
  std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress) override;
  std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingTask& task,
                                    const std::function<void(int)>& progress) override {
    return anneal_points(model_, data, task, random_, team_, progress);
  }
  SimulatedData simulate(int count) const override { return model_.simulate(random_, count); }
  TrainState save() const override;
  void restore(const TrainState& state) override;

 private:
  void step(TrainMetrics& metrics);
  void encode();
  void sample();
  void evaluate(const Target& target, const Matrix<double>& z, Want want, std::span<double> value,
                MatrixView<double> gradient);
  Refinement refine();
  void find_gradients();
  void leave_out_dropped(Matrix<double>& z);
  void clear_dropped(int begin, int end);
  void update();
  double rate_of(const Tensor& tensor) const;
  TrainedParameters<Real> trained() const {  // saving reads them, restoring writes them
    auto& self = const_cast<CpuEngine&>(*this);
    return {model_.parameters().tensors(), self.model_.parameters().values(), self.first_, self.second_};
  }
  BaselineFactory baselines();
  template <class Do>
  void for_columns(Do&& work) {
    team_.for_shares(config_.batch, [&](int begin, int end, int) { work(begin, end); });
  }

  TrainConfig config_;
  const DataSet& data_;
  PhiloxSource philox_;
  const RandomSource& random_;
  std::unique_ptr<Minibatches> minibatches_;
  std::function<void(const IterationView&)> observe_;
  Team team_;
  Model<Real> model_;
  Minibatch<Real> minibatch_;
  LatentTarget<Real> target_;      // exact
  LatentTarget<Real> trajectory_;  // what the chains move by: with bf16 its gradients are not exact, its values are
  AmortizedFamily family_;
  Evidence evidence_;
  std::map<std::string, LocalBaseline*> local_;  // by name in checkpoints; owned by the objective
  std::unique_ptr<Objective> objective_;
  bool analytic_;
  Refiner refiner_;
  EncoderTape<Real> encoder_tape_;
  Tape<Real> decoder_tape_;
  std::vector<double> ascent_;          // of the minibatch's means and standard deviations
  std::vector<Real> gradient_;          // of all parameters
  std::vector<Real> first_, second_;    // the optimizer's moments; RMSProp's G is second_
  std::vector<int> indices_;            // of the minibatch's data
  std::vector<std::uint32_t> columns_;  // 0 … batch − 1
  std::uint32_t iteration_ = 0;
};

template <class Real>
CpuEngine<Real>::CpuEngine(const TrainConfig& config, const DataSet& train, EngineOptions options)
    : config_(config),
      data_(train),
      philox_(config.seed),
      random_(options.random ? *options.random : philox_),
      minibatches_(options.minibatches ? std::move(options.minibatches)
                                       : permuted_minibatches(train.size(), config.seed)),
      observe_(std::move(options.observe)),
      team_(options.threads),
      model_(config, train),
      minibatch_(model_.minibatch(config.batch)),
      target_(model_.decoder()),
      trajectory_(model_.decoder(), model_.gradients()),
      family_(config.model.latent, config.batch, &team_),
      evidence_(config.model.latent, config.batch, 1),  // a draw that is lost passes nothing to other data
      objective_(make_objective(config.objective, family_, baselines())),
      analytic_(analytic_entropy(config.objective.entropy, family_)),
      refiner_(config.kernel, config.refine, team_),
      ascent_(family_.parameters().size()),
      gradient_(model_.parameters().size()),
      first_(config.optimizer == OptimizerKind::adam ? model_.parameters().size() : 0),
      second_(model_.parameters().size()),
      indices_(config.batch),
      columns_(config.batch) {
  std::iota(columns_.begin(), columns_.end(), 0u);
  model_.initialize(philox_);
  target_.set_data(minibatch_);
  trajectory_.set_data(minibatch_);
}

template <class Real>
BaselineFactory CpuEngine<Real>::baselines() {
  return [this](Term term) -> std::unique_ptr<Baseline> {
    if (config_.baseline == LatentBaseline::none) return make_baseline(BaselineKind::none, 0);
    const bool local = config_.baseline == LatentBaseline::local;
    auto baseline = std::make_unique<LocalBaseline>(data_.size(), config_.objective.baseline_decay,
                                                    local ? config_.shared_until : assessment_iteration);
    local_[baseline_name(term)] = baseline.get();
    return baseline;
  };
}

template <class Real>
void CpuEngine<Real>::train(std::uint32_t iterations, TrainMetrics& metrics) {
  for (std::uint32_t i = 0; i < iterations; ++i) step(metrics);
}

template <class Real>
void CpuEngine<Real>::step(TrainMetrics& metrics) {
  ++iteration_;
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
    if (refinement.proposals > 0) {  // else no draw is left inside the support
      metrics.acceptance.add(refinement.acceptance);
      metrics.vcd.add(vcd_estimate(family_, evidence_, analytic_));
    }
  }
  if (const double elbo = elbo_estimate(family_, evidence_, analytic_); !std::isnan(elbo)) metrics.elbo.add(elbo);
  std::ranges::fill(ascent_, 0.0);
  objective_->add_ascent(family_, evidence_, ascent_);
  find_gradients();
  if (observe_)
    observe_({family_, evidence_, ascent_, model_.parameters().tensors(), std::span<const Real>(gradient_)});
  update();
}

template <class Real>
void CpuEngine<Real>::encode() {
  for_columns([&](int begin, int end) { model_.expand(data_, indices_, begin, end, minibatch_); });
  model_.encoder().prepare(encoder_tape_, minibatch_.view());
  for_columns(
      [&](int begin, int end) { model_.encoder().forward(encoder_tape_, begin, end, family_.mean(), family_.sd()); });
}

template <class Real>
void CpuEngine<Real>::evaluate(const Target& target, const Matrix<double>& z, Want want, std::span<double> value,
                               MatrixView<double> gradient) {
  for_columns([&](int begin, int end) {
    const int size = end - begin;
    target.evaluate(z.view().columns(begin, end), want, value.empty() ? value : value.subspan(begin, size),
                    gradient.columns(begin, end), std::span(columns_).subspan(begin, size));
  });
}

template <class Real>
void CpuEngine<Real>::sample() {
  family_.draw(random_, iteration_, evidence_.draws);
  evaluate(target_, evidence_.draws.z, Want::both, evidence_.log_p0, evidence_.grad_p0);
  if (!analytic_) family_.log_density(evidence_.draws.z, Want::both, evidence_.log_q0, evidence_.grad_q0);
}

template <class Real>
Refinement CpuEngine<Real>::refine() {
  Chains& chains = evidence_.refined;
  begin_refinement(evidence_);
  if (model_.gradients() != Gradients::exact)  // all kicks are by one function, or the trajectory is not reversible
    evaluate(trajectory_, chains.z, Want::gradient, {}, chains.gradient);
  const Refinement result = refiner_.refine(trajectory_, chains.view(), config_.batch, iteration_, random_);
  end_refinement(evidence_);
  family_.log_density(chains.z, Want::value, evidence_.log_qt, {});
  return result;
}

// The model learns at the refined draws where there are any, q from the objective's gradient in its means and
// deviations.
template <class Real>
void CpuEngine<Real>::find_gradients() {
  Matrix<double>& z = objective_->refines() ? evidence_.refined.z : evidence_.draws.z;
  leave_out_dropped(z);
  const AmortizedFamily::Halves ascent = family_.split(ascent_);
  model_.decoder().prepare(decoder_tape_, config_.batch);
  for_columns([&](int begin, int end) {
    model_.decoder().record({z, minibatch_, columns_}, begin, end, decoder_tape_);
    clear_dropped(begin, end);
    model_.encoder().backward(encoder_tape_, begin, end, ascent.mean, ascent.sd);
  });
  const int parts = team_.threads();
  team_.for_shares(parts, [&](int part, int, int) {
    model_.decoder().sum_gradient(decoder_tape_, part, parts, gradient_);
    model_.encoder().sum_gradient(encoder_tape_, part, parts, gradient_);
  });
}

// A draw that left the estimate teaches the model nothing either: its column gets a point where the decoder is finite,
// and then deltas of zero.
template <class Real>
void CpuEngine<Real>::leave_out_dropped(Matrix<double>& z) {
  for (int c = 0; c < z.cols(); ++c)
    if (evidence_.draws.weight[c] == 0) std::ranges::fill(z.column(c), 0.0);
}

template <class Real>
void CpuEngine<Real>::clear_dropped(int begin, int end) {
  for (int c = begin; c < end; ++c)
    if (evidence_.draws.weight[c] == 0)
      for (auto& delta : decoder_tape_.delta) std::fill_n(delta.view().column(c), delta.rows(), Real(0));
}

template <class Real>
double CpuEngine<Real>::rate_of(const Tensor& tensor) const {
  if (tensor.name.starts_with("decoder.")) return config_.rate_model;
  return tensor.name.starts_with("mean.") ? config_.rate_mean : config_.rate_scale;
}

template <class Real>
void CpuEngine<Real>::update() {
  const double decayed = decay_factor(config_.rate_decay, config_.decay_every, iteration_);
  const AdamCorrection correction(iteration_);
  const std::span<Real> theta = model_.parameters().values();
  std::atomic<bool> finite = true;
  team_.for_shares(static_cast<int>(theta.size()), [&](int begin, int end, int) {
    for (const Tensor& tensor : model_.parameters().tensors()) {
      const Elements range{std::max(static_cast<std::size_t>(begin), tensor.offset),
                           std::min(static_cast<std::size_t>(end), tensor.offset + tensor.size())};
      if (range.begin >= range.end) continue;
      const Real rate = static_cast<Real>(decayed * rate_of(tensor));
      const UpdateArrays<Real> arrays{gradient_, first_, second_, theta};
      const bool sound = config_.optimizer == OptimizerKind::rmsprop
                             ? rmsprop_update(range, rate, iteration_ == 1, arrays)
                             : adam_update(range, rate, correction, arrays);
      if (!sound) finite = false;
    }
  });
  if (!finite) throw not_finite("a parameter", iteration_);
  team_.for_shares(team_.threads(), [&](int part, int, int) { model_.pack(part, team_.threads()); });
}

template <class Real>
std::vector<PointEvaluation> CpuEngine<Real>::evaluate(const DataSet& data, const EvaluationConfig& config,
                                                       const std::function<void(int)>& progress) {
  return evaluate_points(model_, data, config, {config_.kernel, step_size(), config_.refine.acceptance}, random_, team_,
                         progress);
}

template <class Real>
TrainState CpuEngine<Real>::save() const {
  TrainState state{iteration_, refiner_.step_size(), {}};
  add_parameters<Real>(state, trained());
  for (const auto& [name, baseline] : local_) add_array(state, name, baseline->values());
  return state;
}

template <class Real>
void CpuEngine<Real>::restore(const TrainState& state) {
  take_parameters<Real>(state, trained());
  for (const auto& [name, baseline] : local_) take_array(state, name, baseline->values());
  iteration_ = state.iteration;
  refiner_.set_step_size(state.step_size);
  model_.pack(0, 1);
}

}  // namespace

std::unique_ptr<Engine> make_cpu_engine(const TrainConfig& config, const DataSet& train, EngineOptions options) {
  if (config.precision == Precision::float64)
    return std::make_unique<CpuEngine<double>>(config, train, std::move(options));
  return std::make_unique<CpuEngine<float>>(config, train, std::move(options));
}

}  // namespace hone
