#pragma once

#include <vector>

#include "hone/family/family.hpp"
#include "hone/mcmc/kernel.hpp"
#include "hone/target/target.hpp"

namespace hone {

// What one iteration learned about its draws: all that an objective needs.
struct Evidence {
  Evidence(int dimension, int components, int per_component);

  // f_θ = log p(x, z) − log q_θ(z), eq. instantaneous_elbo, at z0 and at z_t
  double f0(int draw) const { return log_p0[draw] - log_q0[draw]; }
  double ft(int draw) const { return refined.value[draw] - log_qt[draw]; }

  Draws draws;                  // z0
  std::vector<double> log_p0, log_q0;
  Matrix<double> grad_p0, grad_q0;  // (D, n)
  Chains refined;               // z_t with log p(x, z_t)
  std::vector<double> log_qt;
};

// A draw outside the support (log p = −∞) leaves the estimate: its weight passes to the other draws of its component,
// and what it carries is set to zero. Returns how many left. Call once log_p0 is known, before refining.
int drop_outside_support(Evidence& evidence);

}  // namespace hone
