#include "hone/mcmc/kernel.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/planted.hpp"
#include "hone/base/scalar.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {

ChainsView ChainsView::range(int begin, int end) const {
  const int size = end - begin;
  return {.z = z.columns(begin, end),
          .value = value.subspan(begin, size),
          .gradient = gradient.columns(begin, end),
          .acceptance = acceptance.subspan(begin, size),
          .outcome = outcome.subspan(begin, size),
          .first_datum = first_datum + static_cast<std::uint32_t>(begin)};
}

Chains::Chains(int dimension, int count)
    : z(dimension, count), value(count), gradient(dimension, count), acceptance(count), outcome(count) {}

ChainsView Chains::view(std::uint32_t first_datum) {
  return {.z = z,
          .value = value,
          .gradient = gradient,
          .acceptance = acceptance,
          .outcome = outcome,
          .first_datum = first_datum};
}

void metropolis(const Proposal& proposal, const Move& move, const ChainsView& chains, int chain) {
  double& acceptance = chains.acceptance[chain];
  Outcome& outcome = chains.outcome[chain];
  acceptance = 0;
  outcome = Outcome::outside;
  if (chains.value[chain] == -infinity) return;
  outcome = Outcome::nonfinite;
  if (!std::isfinite(proposal.value) || std::isnan(proposal.log_ratio)) return;

  acceptance = std::exp(std::min(0.0, proposal.log_ratio));
  double uniform = 0;
  move.random.uniforms({Purpose::accept, move.iteration, chains.datum(chain), move.step}, {&uniform, 1});
  const bool accept = std::log(uniform) < proposal.log_ratio || planted(Fault::no_metropolis);
  outcome = accept ? Outcome::accepted : Outcome::rejected;
  if (!accept) return;
  copy(proposal.z, chains.z.column(chain));
  if (!proposal.gradient.empty()) copy(proposal.gradient, chains.gradient.column(chain));
  chains.value[chain] = proposal.value;
}

}  // namespace hone
