#include "hone/objective/evidence.hpp"

#include <algorithm>

#include "hone/base/scalar.hpp"

namespace hone {

Evidence::Evidence(int dimension, int components, int per_component)
    : draws(dimension, components, per_component),
      log_p0(draws.count()),
      log_q0(draws.count()),
      grad_p0(dimension, draws.count()),
      grad_q0(dimension, draws.count()),
      refined(dimension, draws.count()),
      log_qt(draws.count()) {}

int drop_outside_support(Evidence& evidence) {
  Draws& draws = evidence.draws;
  int dropped = 0;
  for (int begin = 0; begin < draws.count(); begin += draws.per_component) {
    const int end = begin + draws.per_component;
    int left = 0;
    for (int i = begin; i < end; ++i) left += evidence.log_p0[i] == -infinity;
    if (left == 0) continue;
    dropped += left;
    const int kept = draws.per_component - left;
    for (int i = begin; i < end; ++i) {
      if (evidence.log_p0[i] != -infinity) {
        draws.weight[i] *= static_cast<double>(draws.per_component) / kept;
        continue;
      }
      draws.weight[i] = 0;
      evidence.log_p0[i] = 0;
      std::ranges::fill(evidence.grad_p0.column(i), 0.0);
    }
  }
  return dropped;
}

void begin_refinement(Evidence& evidence) {
  Chains& chains = evidence.refined;
  std::ranges::copy(evidence.draws.z.view().flat(), chains.z.view().flat().begin());
  std::ranges::copy(evidence.grad_p0.view().flat(), chains.gradient.view().flat().begin());
  for (int i = 0; i < evidence.draws.count(); ++i)
    chains.value[i] = evidence.draws.weight[i] == 0 ? -infinity : evidence.log_p0[i];
}

void end_refinement(Evidence& evidence) {
  for (double& value : evidence.refined.value)
    if (value == -infinity) value = 0;
}

}  // namespace hone
