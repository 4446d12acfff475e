#include "hone/objective/objective.hpp"

namespace hone {

double elbo_estimate(const Family& family, const Evidence& evidence, bool analytic) {
  double sum = 0, weight = 0;
  for (int i = 0; i < evidence.draws.count(); ++i) {
    const double f =
        analytic ? evidence.log_p0[i] + 0.5 * family.dimension() + family.log_normalizer(i) : evidence.f0(i);
    sum += evidence.draws.weight[i] * f;
    weight += evidence.draws.weight[i];
  }
  return sum / weight;
}

double vcd_estimate(const Family& family, const Evidence& evidence, bool analytic) {
  double refined = 0, weight = 0;
  for (int i = 0; i < evidence.draws.count(); ++i) {
    refined += evidence.draws.weight[i] * evidence.ft(i);
    weight += evidence.draws.weight[i];
  }
  return refined / weight - elbo_estimate(family, evidence, analytic);  // eq. new_divergence_rearranged
}

}  // namespace hone
