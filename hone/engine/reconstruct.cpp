#include "hone/engine/reconstruct.hpp"

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
  Matrix<double> z(latent, count);
  const PhiloxSource random(config.seed);
  Reconstructions result{.data = Matrix<double>(pixels, count),
                         .from_q = Matrix<double>(pixels, count),
                         .refined = Matrix<double>(pixels, count),
                         .samples = Matrix<double>(pixels, count)};
  data.expand(indices, result.data.view());
  model->draw_q(data, indices, random, z);
  model->mean(z, result.from_q);
  result.acceptance = model->refine(data, indices, config.refine.steps, random, z, {});
  model->mean(z, result.refined);
  for (int c = 0; c < count; ++c)
    random.normals({Purpose::proposal, assessment_iteration, static_cast<std::uint32_t>(c)}, z.column(c));
  model->mean(z, result.samples);
  return result;
}

}  // namespace hone
