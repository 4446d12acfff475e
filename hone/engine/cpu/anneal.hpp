#pragma once

#include <functional>

#include "hone/base/random.hpp"
#include "hone/engine/cpu/groups.hpp"
#include "hone/engine/evaluation.hpp"
#include "hone/latent/model.hpp"

namespace hone {

// Anneals the first task.points of `data`. Workers share the data in groups of 50, and a point's result depends
// neither on the number of points nor on the number of workers.
template <class Real>
std::vector<AnnealedPoint> anneal_points(const Model<Real>& model, const DataSet& data, const AnnealingTask& task,
                                         const RandomSource& random, const Workers& workers,
                                         const std::function<void(int)>& progress);

}  // namespace hone
