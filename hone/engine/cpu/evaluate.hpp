#pragma once

#include <functional>

#include "hone/base/random.hpp"
#include "hone/engine/cpu/groups.hpp"
#include "hone/engine/evaluation.hpp"
#include "hone/latent/model.hpp"
#include "hone/mcmc/kernel.hpp"

namespace hone {

// The kernel and the starting step size of the chains that find the proposals.
struct EvaluationChain {
  const Kernel& kernel;
  double step_size;
  double acceptance;
};

// Evaluates the first config.points of `data`. The chains of a group of 50 data adapt one step size, and workers
// share these groups. Groups are always cut from all of `data`, so a point's result depends neither on the number of
// points nor on the number of workers.
template <class Real>
std::vector<PointEvaluation> evaluate_points(const Model<Real>& model, const DataSet& data,
                                             const EvaluationConfig& config, const EvaluationChain& chain,
                                             const RandomSource& random, const Workers& workers,
                                             const std::function<void(int)>& progress);

}  // namespace hone
