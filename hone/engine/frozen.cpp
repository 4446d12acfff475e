#include "hone/engine/frozen.hpp"

#include <algorithm>
#include <numeric>

#include "hone/base/parallel.hpp"
#include "hone/engine/state_arrays.hpp"
#include "hone/engine/trajectory_gradients.hpp"
#include "hone/latent/latent_target.hpp"
#include "hone/latent/model.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/target/interruptible.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

template <class Real>
class Frozen final : public FrozenModel {
 public:
  Frozen(const TrainConfig& config, const TrainState& state, const DataSet& train)
      : config_(config),
        step_size_(state.step_size),
        model_(config.model, train, trajectory_gradients(config.precision), config.family) {
    take_parameters<Real>(
        state,
        {.tensors = model_.parameters().tensors(), .values = model_.parameters().values(), .first = {}, .second = {}});
    model_.pack(0, 1);
  }

  int latent() const override { return model_.decoder().latent(); }
  int pixels() const override { return model_.decoder().pixels(); }
  int outputs() const override { return model_.decoder().outputs(); }
  void check(const DataSet& data, int first) const override { model_.check(data, first); }

  void encode(const DataSet& data, std::span<const int> indices, MatrixView<double> mean,
              MatrixView<double> sd) const override {
    model_.q(expanded(data, indices)).moments_per_datum(mean, sd);
  }

  void draw_q(const DataSet& data, std::span<const int> indices, const RandomSource& random,
              MatrixView<double> z) const override {
    Draws draws(latent(), count_of(indices), 1);
    model_.q(expanded(data, indices)).draw(random, assessment_iteration, draws);
    std::ranges::copy(draws.z.view().flat(), z.flat().begin());
  }

  double refine(const DataSet& data, std::span<const int> indices, int steps, const RandomSource& random,
                MatrixView<double> z, const std::function<void()>& beat) const override;

  void outputs(MatrixView<const double> z, MatrixView<double> out) const override { model_.decoder().outputs(z, out); }
  void mean(MatrixView<const double> z, MatrixView<double> out) const override { model_.mean(z, out); }
  void draw(const RandomSource& random, int first, MatrixView<const double> z, MatrixView<double> x) const override {
    model_.draw(random, first, z, x);
  }

 private:
  static int count_of(std::span<const int> indices) { return static_cast<int>(indices.size()); }
  Minibatch<Real> expanded(const DataSet& data, std::span<const int> indices) const {
    Minibatch<Real> minibatch = model_.minibatch(count_of(indices));
    model_.expand(data, indices, 0, count_of(indices), minibatch);
    return minibatch;
  }

  TrainConfig config_;
  double step_size_;
  Model<Real> model_;
};

template <class Real>
double Frozen<Real>::refine(const DataSet& data, std::span<const int> indices, int steps, const RandomSource& random,
                            MatrixView<double> z, const std::function<void()>& beat) const {
  const Minibatch<Real> minibatch = expanded(data, indices);
  LatentTarget<Real> latent_target(model_.decoder(), model_.gradients());
  latent_target.set_data(minibatch);
  const InterruptibleTarget target(latent_target, beat);
  const int count = count_of(indices);
  Chains chains(latent(), count);
  for (int c = 0; c < count; ++c) copy(z.column(c), chains.z.column(c));
  std::vector<std::uint32_t> datum(count);
  std::iota(datum.begin(), datum.end(), 0u);
  target.evaluate(chains.z, Want::both, chains.value, chains.gradient, datum);
  Team alone(1);
  double step_size = step_size_;
  if (!config_.objective->refines())
    step_size = find_step_size(target, *config_.kernel, chains, step_size, config_.refine.acceptance, random, alone);
  RefineConfig refinement = config_.refine;
  refinement.steps = steps;
  refinement.adapt = Adapt::off;
  refinement.step_size = step_size;
  const double acceptance = Refiner(*config_.kernel, refinement, alone)
                                .refine(target, chains.view(), count, assessment_iteration, random)
                                .acceptance;
  for (int c = 0; c < count; ++c) copy(chains.z.column(c), z.column(c));
  return acceptance;
}

}  // namespace

std::unique_ptr<FrozenModel> freeze(const TrainConfig& config, const TrainState& state, const DataSet& train) {
  check(config);
  if (config.precision == Precision::float64) return std::make_unique<Frozen<double>>(config, state, train);
  return std::make_unique<Frozen<float>>(config, state, train);
}

}  // namespace hone
