#include "hone/engine/reconstruct.hpp"

#include <algorithm>
#include <numeric>

#include "hone/engine/frozen.hpp"

namespace hone {

Reconstructions reconstruct(const TrainConfig& config, const TrainState& state, const DataSet& train,
                            const DataSet& data, int count) {
  const auto model = freeze(config, state, train);
  model->check(data);
  const int latent = config.model.latent, pixels = data.dimension();
  std::vector<int> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  Matrix<double> mean(latent, count), sd(latent, count), z(latent, count);
  model->encode(data, indices, mean, sd);

  const PhiloxSource random(config.seed);
  Reconstructions result{.data = Matrix<double>(pixels, count),
                         .from_q = Matrix<double>(pixels, count),
                         .refined = Matrix<double>(pixels, count),
                         .samples = Matrix<double>(pixels, count)};
  data.expand(indices, result.data.view());
  draw_normals(random, Purpose::draw, mean, sd, z);
  model->mean(z, result.from_q);
  result.acceptance = model->refine(data, indices, config.refine.steps, random, z, {});
  model->mean(z, result.refined);
  Matrix<double> zero(latent, count), one(latent, count);
  std::ranges::fill(one.view().flat(), 1.0);
  draw_normals(random, Purpose::proposal, zero, one, z);
  model->mean(z, result.samples);
  return result;
}

}  // namespace hone
