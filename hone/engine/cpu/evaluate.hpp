#pragma once

#include <functional>

#include "hone/base/parallel.hpp"
#include "hone/base/random.hpp"
#include "hone/engine/cpu/model.hpp"
#include "hone/engine/evaluation.hpp"

namespace hone {

// What the chains that find the proposals start from.
struct EvaluationChain {
  KernelConfig kernel;
  double step_size;
  double acceptance;
};

// Evaluates the first config.points of `data`. The chains of 50 data share the adaptation of their step size, and the
// team shares out such chunks; they are always chunks of all of `data`, so that a point's result depends neither on the
// number of points nor on that of threads.
template <class Real>
std::vector<PointEvaluation> evaluate_points(const Model<Real>& model, const DataSet& data,
                                             const EvaluationConfig& config, const EvaluationChain& chain,
                                             const RandomSource& random, Team& team,
                                             const std::function<void(int)>& progress);

}  // namespace hone
