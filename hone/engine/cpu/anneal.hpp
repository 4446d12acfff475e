#pragma once

#include <functional>

#include "hone/base/parallel.hpp"
#include "hone/engine/cpu/model.hpp"
#include "hone/engine/engine.hpp"

namespace hone {

// Anneals the chains of task.points of `data`, groups of 50 data shared out over the team: a point's result depends
// neither on the number of points nor on that of threads.
template <class Real>
std::vector<AnnealedPoint> anneal_points(const Model<Real>& model, const DataSet& data, const AnnealingTask& task,
                                         const RandomSource& random, Team& team,
                                         const std::function<void(int)>& progress);

}  // namespace hone
