#include "hone/assess/divergence.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/given.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

// One estimate per component, combined with the components' weights. NaN if a component with positive weight has no
// values; the standard error is NaN if it has fewer than two.
class Stratified {
 public:
  explicit Stratified(std::size_t strata) : moments_(strata) {}
  void add(int stratum, double value) { moments_[stratum].add(value); }
  Estimate combine(std::span<const double> weight) const {
    double mean = 0, variance = 0;
    for (std::size_t k = 0; k < moments_.size(); ++k) {
      if (weight[k] == 0) continue;
      const Estimate stratum = moments_[k].estimate();
      mean += weight[k] * stratum.mean;
      variance += square(weight[k] * stratum.se);
    }
    return {mean, std::sqrt(variance)};
  }

 private:
  std::vector<Moments> moments_;
};

// log q of all draws, in pieces between which `watch` hears of the share that is done, from `from` on to one half more.
void log_density(const Family& family, MatrixView<const double> z, std::span<double> log_q,
                 const std::function<void(double)>& watch, double from) {
  constexpr int piece = 1000;
  for (int begin = 0; begin < z.cols(); begin += piece) {
    const int end = std::min(z.cols(), begin + piece);
    family.log_density(z.columns(begin, end), Want::value,
                       log_q.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)), {});
    if (watch) watch(from + 0.5 * end / z.cols());
  }
}

}  // namespace

Divergence estimate_divergence(const Target& target, const Family& family, const DivergenceConfig& config,
                               const RandomSource& random) {
  if (config.draws < 2) throw InputError("an estimate of the VCD needs at least 2 draws");
  Draws draws(family.dimension(), family.components(), config.draws);
  family.draw(random, assessment_iteration, draws);
  const int count = draws.count();

  Chains chains(family.dimension(), count);
  chains.z = draws.z;
  Team team(config.threads);
  Refiner refiner(given(config.kernel, "kernel"),
                  {.steps = config.steps, .adapt = Adapt::off, .step_size = config.step_size}, team);
  target.evaluate(chains.z, refiner.wants(), chains.value, chains.gradient);
  std::vector<double> log_q(count);
  log_density(family, chains.z.view(), log_q, config.watch, 0);
  std::vector<double> f0(count);
  for (int i = 0; i < count; ++i) f0[i] = chains.value[i] - log_q[i];

  const Refinement refinement = refiner.refine(target, chains.view(), config.draws, assessment_iteration, random);
  log_density(family, chains.z.view(), log_q, config.watch, 0.5);

  // If draws lie outside the support, the values are those of q restricted to it: the weights become w_k · (fraction
  // inside), and the ELBO gains log q(support).
  Divergence result;
  Stratified elbo(family.components()), vcd(family.components());
  std::vector<double> weight(family.components());
  double inside = 0;
  for (int i = 0; i < count; ++i) {
    if (f0[i] == -infinity) {
      ++result.dropped_draws;
      continue;
    }
    const int k = draws.component_of(i);
    weight[k] += draws.weight[i];
    inside += draws.weight[i];
    elbo.add(k, f0[i]);
    vcd.add(k, chains.value[i] - log_q[i] - f0[i]);
  }
  if (inside == 0) {
    result.elbo = {-infinity, std::nan("")};
    result.vcd = {std::nan(""), std::nan("")};
    return result;
  }
  for (double& w : weight) w /= inside;
  result.elbo = elbo.combine(weight);
  if (result.dropped_draws > 0) result.elbo.mean += std::log(inside);
  result.vcd = vcd.combine(weight);
  result.acceptance = refinement.acceptance;
  result.rejected_nonfinite = refinement.nonfinite;
  return result;
}

double tuned_step_size(const Target& target, const Family& family, const Kernel& kernel, const RefineConfig& config,
                       const RandomSource& random) {
  constexpr std::uint32_t most = 2000, least = 100;
  constexpr int draws_each = 4;
  const auto components = static_cast<std::uint32_t>(family.components());
  const std::uint32_t refinements = std::clamp(20 * most / components, least, most);
  Team team(1);
  Refiner refiner(
      kernel,
      {.steps = config.steps, .adapt = Adapt::between, .step_size = config.step_size, .acceptance = config.acceptance},
      team);
  Draws draws(family.dimension(), family.components(), draws_each);
  Chains chains(family.dimension(), draws.count());
  Moments log_size;
  for (std::uint32_t i = 1; i <= refinements; ++i) {
    family.draw(random, assessment_iteration + i, draws);
    chains.z = draws.z;
    target.evaluate(chains.z, refiner.wants(), chains.value, chains.gradient);
    refiner.refine(target, chains.view(), draws.count(), assessment_iteration + i, random);
    if (2 * i > refinements) log_size.add(std::log(refiner.step_size()));
  }
  return std::exp(log_size.mean());
}

}  // namespace hone
