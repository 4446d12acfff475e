#include "hone/mcmc/kernel.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/base/planted.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/mala.hpp"
#include "hone/mcmc/random_walk.hpp"

namespace hone {

ChainsView ChainsView::range(int begin, int end) const {
  const int size = end - begin;
  return {z.columns(begin, end),
          value.subspan(begin, size),
          gradient.columns(begin, end),
          acceptance.subspan(begin, size),
          outcome.subspan(begin, size),
          first_datum + static_cast<std::uint32_t>(begin)};
}

Chains::Chains(int dimension, int count)
    : z(dimension, count), value(count), gradient(dimension, count), acceptance(count), outcome(count) {}

ChainsView Chains::view(std::uint32_t first_datum) { return {z, value, gradient, acceptance, outcome, first_datum}; }

bool metropolis(double log_ratio, double proposed_value, const Move& move, const ChainsView& chains, int chain) {
  const bool finite = std::isfinite(proposed_value) && !std::isnan(log_ratio);
  double uniform = 0;
  move.random.uniforms({Purpose::accept, move.iteration, chains.datum(chain), move.step}, {&uniform, 1});
  const bool accept = finite && (planted(Fault::no_metropolis) || std::log(uniform) < log_ratio);
  chains.acceptance[chain] = finite ? std::exp(std::min(0.0, log_ratio)) : 0;
  chains.outcome[chain] = accept ? Outcome::accepted : finite ? Outcome::rejected : Outcome::nonfinite;
  return accept;
}

std::unique_ptr<Kernel> make_kernel(const KernelConfig& config) {
  switch (config.kind) {
    case KernelKind::hmc:
      return std::make_unique<Hmc>(config.leapfrog, config.leapfrog_jitter);
    case KernelKind::mala:
      return std::make_unique<Mala>();
    case KernelKind::random_walk:
      return std::make_unique<RandomWalk>();
  }
  throw Error("unknown kernel");
}

double default_acceptance(KernelKind kind) {
  switch (kind) {
    case KernelKind::hmc:
      return 0.7;
    case KernelKind::mala:
      return 0.54;
    case KernelKind::random_walk:
      return 0.4;
  }
  throw Error("unknown kernel");
}

}  // namespace hone
