#pragma once

#include <cstdint>

#include "hone/assess/refined_draws.hpp"
#include "hone/base/parallel.hpp"
#include "hone/fit/posterior_fit.hpp"

namespace hone {

// Mean and covariance of the posterior over e, from states of chains with their gradients. Stein's identities
// E[g] = 0 and E[(e − m) gᵀ] = −I, g = ∇ log p, serve as control variates: no error is left where the posterior is the
// standard normal, and little where it is near it.
struct StateMoments {
  std::vector<double> mean;
  Matrix<double> covariance;  // (D, D), where it was asked for
};
enum class Second { none, covariance };
StateMoments moments_of_states(const ChainStates& states, Second which);

// q with the mean and covariance of the states, as far as its kind can represent them; q itself if there are too few
// states. `effective`: how many independent draws the states are worth. `part` < 1 goes only that part of the way from
// q's mean and covariance to theirs.
Whitening matched(const FittedQ& q, const ChainStates& states, double effective, double part = 1);

// How much the VCD after many steps falls if q, the Gaussian of `own`, becomes that of `candidate`. It is E_p[f] −
// E_q[f] with f = log p − log q: the first from states over the e of `own`, the second from a few draws of both, with
// the same noise.
Estimate gain_of(const Target& target, const Whitening& own, const Whitening& candidate, const ChainStates& states,
                 std::uint64_t seed, Team& team);

// The best candidate for q, and how much its VCD falls at least and at most: two standard errors below and above.
struct BestQ {
  Whitening whitening;
  double gain = 0, possible = 0;
};
// The best of q with the moments of the states, q half of the way there and, for some kinds, q with the posterior's
// curvature at their mean; q unchanged if none certainly lowers its VCD.
BestQ best_q(const Target& target, const FittedQ& q, const RefinedDraws& seen, std::uint64_t seed, Team& team);

}  // namespace hone
