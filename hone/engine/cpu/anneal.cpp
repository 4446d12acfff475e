#include "hone/engine/cpu/anneal.hpp"

#include <numeric>

#include "hone/assess/annealing_parts.hpp"
#include "hone/base/error.hpp"
#include "hone/latent/latent_target.hpp"
#include "hone/target/interruptible.hpp"

namespace hone {

template <class Real>
std::vector<AnnealedPoint> anneal_points(const Model<Real>& model, const DataSet& data, const AnnealingTask& task,
                                         const RandomSource& random, const Workers& workers,
                                         const std::function<void(int)>& progress) {
  model.check(data);
  check(task, data.size());
  std::vector<AnnealedPoint> points(std::min(data.size(), task.points.value_or(data.size())));
  const Groups groups{annealing_group, data.size(), static_cast<int>(points.size())};
  for_groups(workers, groups, std::span(points), progress, [&] {
    return [&](const DataGroup& group, const std::function<void()>& beat) {
      Minibatch<Real> minibatch = model.minibatch(group.count());
      std::vector<int> indices(group.count());
      std::iota(indices.begin(), indices.end(), group.begin);
      model.expand(data, indices, 0, group.count(), minibatch);
      const auto first = static_cast<std::uint32_t>(task.first + group.begin);
      LatentTarget<Real> target(model.decoder());
      target.set_data(minibatch, first);
      const InterruptibleTarget interruptible(target, beat);
      Annealer annealer(interruptible, task.config, random);
      const MatrixView<const double> draws = task.posterior_draws.columns(group.begin, group.end);
      const auto found = task.backward() ? annealer.backward(first, draws, group.wanted)
                                         : annealer.forward(first, group.count(), group.wanted);
      std::copy_n(found.begin(), group.wanted, points.begin() + group.begin);
    };
  });
  return points;
}

template std::vector<AnnealedPoint> anneal_points(const Model<float>&, const DataSet&, const AnnealingTask&,
                                                  const RandomSource&, const Workers&, const std::function<void(int)>&);
template std::vector<AnnealedPoint> anneal_points(const Model<double>&, const DataSet&, const AnnealingTask&,
                                                  const RandomSource&, const Workers&, const std::function<void(int)>&);

}  // namespace hone
