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

// Evaluates every datum of `data`, in chunks of 50 that the team shares out: the result does not depend on its size.
template <class Real>
std::vector<PointEvaluation> evaluate_points(const Model<Real>& model, const DataSet& data,
                                             const EvaluationConfig& config, const EvaluationChain& chain,
                                             const RandomSource& random, Team& team,
                                             const std::function<void(int)>& progress);

}  // namespace hone
