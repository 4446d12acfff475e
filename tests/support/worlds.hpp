#pragma once

#include <memory>
#include <string>

#include "hone/family/family.hpp"
#include "hone/fit/fit.hpp"
#include "hone/target/toys.hpp"
#include "hone/target/transport_map.hpp"
#include "tests/support/methods.hpp"
#include "tests/support/oracle.hpp"

namespace hone::test {

// A one-dimensional target twice: the library's, and the oracle's own formulas.
struct World {
  std::unique_ptr<Target> target;
  Density density;
};
World gaussian_world();  // N(0.4, 0.9²)
World bimodal_world();   // 0.4 N(−1.2, 0.6²) + 0.6 N(1.3, 0.8²)

// A one-dimensional q twice: the library's family, and log q_θ(z) by the oracle's own formula of the same θ.
struct Approximation {
  std::unique_ptr<Family> family;
  double (*log_q)(std::span<const double> theta, double z);

  Function at(std::span<const double> theta) const {
    return [theta, log_q = log_q](double z) { return log_q(theta, z); };
  }
};
Approximation gaussian_q();  // N(−0.3, 0.6²)
Approximation mixture_q();   // two components

// How far an estimate is from the truth, in standard errors; and its relative standard error.
struct Deviation {
  std::string what;
  double errors = 0;
  double relative_se = 0;
};
double worst(const std::vector<Deviation>& deviations);
double largest_relative_se(const std::vector<Deviation>& deviations);
std::string describe(const std::vector<Deviation>& deviations);

struct GradientCheck {
  SomeObjective objective = by_vcd();  // or kl
  SomeKernel kernel = hmc();
  int steps = 3;
  double step_size = 0.3;
  int iterations = 6000;
  int draws = 64;
  std::uint64_t seed = 1;
};

// The mean over many iterations of the gradient that a fit follows (θ held fixed) against the exact gradient of
// −VCD_α, from the oracle by differences in θ. Standard errors are relative to the length of the exact gradient: single
// elements may be next to zero.
std::vector<Deviation> gradient_deviations(const World& world, const Approximation& q, const KernelOracle& oracle,
                                           const GradientCheck& check);

// Starts from exact draws of the target, moves them, and compares E[h(z_t)] with E[h(z_0)] for moments and a tail
// probability, by paired differences.
struct InvarianceCheck {
  SomeKernel kernel = hmc();
  Adapt adapt = Adapt::off;
  double step_size = 0.3;
  int steps = 3;
  int batch = 64;
  int batches = 4000;
  std::uint64_t seed = 2;
  const TransportMap* map = nullptr;  // chains move in its coordinates
};
// A map of two coordinates with every shape of feature. It suits no target; every target must stay invariant.
TransportMap some_map();
struct Invariance {
  std::vector<Deviation> deviations;
  double acceptance = 0;  // a chain that never moves is invariant too
};
Invariance check_invariance(Toy toy, const InvarianceCheck& check);

}  // namespace hone::test
