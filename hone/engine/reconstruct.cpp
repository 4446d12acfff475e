#include "hone/engine/reconstruct.hpp"

#include <numeric>

#include "hone/base/parallel.hpp"
#include "hone/engine/state_arrays.hpp"
#include "hone/latent/latent_target.hpp"
#include "hone/latent/model.hpp"
#include "hone/mcmc/refine.hpp"

namespace hone {
namespace {

// z ~ N(mean, sd²), with one stream of random numbers per column.
void draw(const RandomSource& random, Purpose purpose, MatrixView<const double> mean, MatrixView<const double> sd,
          MatrixView<double> z) {
  for (int c = 0; c < z.cols(); ++c) {
    random.normals({purpose, assessment_iteration, static_cast<std::uint32_t>(c)}, z.column(c));
    for (int d = 0; d < z.rows(); ++d) z(d, c) = mean(d, c) + sd(d, c) * z(d, c);
  }
}

// Moves the draws of q and returns the mean acceptance.
template <class Real>
double refine(const TrainConfig& config, const TrainState& state, const Model<Real>& model,
              const Minibatch<Real>& minibatch, const RandomSource& random, Chains& chains) {
  LatentTarget<Real> target(model.decoder(), model.gradients());
  target.set_data(minibatch);
  const int count = chains.view().count();
  std::vector<std::uint32_t> datum(count);
  std::iota(datum.begin(), datum.end(), 0u);
  target.evaluate(chains.z, Want::both, chains.value, chains.gradient, datum);
  Team alone(1);
  double step_size = state.step_size;
  if (!config.objective->refines())
    step_size = find_step_size(target, *config.kernel, chains, step_size, config.refine.acceptance, random, alone);
  RefineConfig refinement = config.refine;
  refinement.adapt = Adapt::off;
  refinement.step_size = step_size;
  return Refiner(*config.kernel, refinement, alone)
      .refine(target, chains.view(), count, assessment_iteration, random)
      .acceptance;
}

template <class Real>
Reconstructions reconstruct_by(const TrainConfig& config, const TrainState& state, const DataSet& train,
                               const DataSet& data, int count) {
  check(config);
  Model<Real> model(config.model, train, trajectory_gradients(config.precision));
  model.check(data);
  std::vector<Real> first(config.optimizer == OptimizerKind::adam ? model.parameters().size() : 0);
  std::vector<Real> second(model.parameters().size());
  take_parameters<Real>(state, {.tensors = model.parameters().tensors(),
                                .values = model.parameters().values(),
                                .first = first,
                                .second = second});
  model.pack(0, 1);

  const int latent = config.model.latent, pixels = data.dimension();
  Minibatch<Real> minibatch = model.minibatch(count);
  std::vector<int> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  model.expand(data, indices, 0, count, minibatch);
  Matrix<double> mean(latent, count), sd(latent, count);
  EncoderTape<Real> tape;
  model.encoder().prepare(tape, minibatch.view());
  model.encoder().forward(tape, 0, count, mean, sd);

  const PhiloxSource random(config.seed);
  Reconstructions result{.data = Matrix<double>(pixels, count),
                         .from_q = Matrix<double>(pixels, count),
                         .refined = Matrix<double>(pixels, count),
                         .samples = Matrix<double>(pixels, count)};
  data.expand(indices, result.data.view());
  Chains chains(latent, count);
  draw(random, Purpose::draw, mean, sd, chains.z);
  model.mean(chains.z, result.from_q);
  result.acceptance = refine(config, state, model, minibatch, random, chains);
  model.mean(chains.z, result.refined);
  Matrix<double> zero(latent, count), one(latent, count), z(latent, count);
  std::ranges::fill(one.view().flat(), 1.0);
  draw(random, Purpose::proposal, zero, one, z);
  model.mean(z, result.samples);
  return result;
}

}  // namespace

Reconstructions reconstruct(const TrainConfig& config, const TrainState& state, const DataSet& train,
                            const DataSet& data, int count) {
  return config.precision == Precision::float64 ? reconstruct_by<double>(config, state, train, data, count)
                                                : reconstruct_by<float>(config, state, train, data, count);
}

}  // namespace hone
