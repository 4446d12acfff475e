#pragma once

#include <vector>

#include "hone/family/family.hpp"
#include "hone/mcmc/kernel.hpp"
#include "hone/target/target.hpp"

namespace hone {

/// What one iteration learned about its draws: all that an objective needs.
struct Evidence {
  /// Memory for per_component draws of each component.
  Evidence(int dimension, int components, int per_component);

  /// f_θ = log p(x, z) − log q_θ(z), eq. instantaneous_elbo, at z0 and at z_t
  double f0(int draw) const { return log_p0[draw] - log_q0[draw]; }
  /// f at z_t
  double ft(int draw) const { return refined.value[draw] - log_qt[draw]; }

  std::uint32_t iteration = 0;  ///< counted from 1
  Draws draws;                  ///< z0
  std::vector<double> log_p0;   ///< log p(x, z0)
  std::vector<double> log_q0;   ///< log q(z0)
  Matrix<double> grad_p0;       ///< ∇_z log p(x, z0), (D, n)
  Matrix<double> grad_q0;       ///< (D, n)
  Chains refined;               ///< z_t with log p(x, z_t)
  std::vector<double> log_qt;   ///< log q(z_t)
};

/// A draw outside the support (log p = −∞) leaves the estimate: its weight passes to the other draws of its component,
/// and what it carries is set to zero. Returns how many left. Call once log_p0 is known, before refining. What is then
/// estimated is an expectation under q restricted to the support, where scores no longer have mean zero: there a
/// baseline changes the mean of the gradient.
int drop_outside_support(Evidence& evidence);

/// Puts the chains where the draws are, with the value and gradient that are known there. A draw that has left makes a
/// chain that does not move.
void begin_refinement(Evidence& evidence);
/// To be called when the chains have moved, before their values are read.
void end_refinement(Evidence& evidence);

}  // namespace hone
