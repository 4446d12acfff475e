#include "hone/assess/annealing.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "hone/assess/annealing_parts.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

double log_prior(std::span<const double> z) {
  double sum = 0;
  for (const double x : z) sum += log_standard_normal(x);
  return sum;
}

// β log p(x | z) + log N(z; 0, I), with `chains` consecutive chains per datum.
class TemperedTarget final : public Target {
 public:
  TemperedTarget(const Target& target, int chains) : target_(target), chains_(static_cast<std::uint32_t>(chains)) {}
  void set_temperature(double beta) { change_.to = beta; }
  int dimension() const override { return target_.dimension(); }

 protected:
  void compute(MatrixView<const double>, Want, std::span<double>, MatrixView<double>) const override {
    throw std::logic_error("an annealed target needs to know which chains it evaluates");
  }
  void compute_data(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> gradient,
                    std::span<const std::uint32_t> chain) const override {
    thread_local std::vector<std::uint32_t> datum;
    datum.resize(chain.size());
    for (std::size_t c = 0; c < chain.size(); ++c) datum[c] = chain[c] / chains_;
    target_.evaluate(z, want, value, gradient, datum);
    for (int c = 0; c < z.cols(); ++c) {
      if (wants_value(want)) value[c] = change_.value(value[c], log_prior(z.column(c)));
      if (wants_gradient(want))
        for (int d = 0; d < z.rows(); ++d) gradient(d, c) = change_.gradient(gradient(d, c), z(d, c));
    }
  }

 private:
  const Target& target_;
  std::uint32_t chains_;
  Retemper change_{1, 1};
};

}  // namespace

void check(const AnnealingConfig& config) {
  if (config.steps < 1 || config.steps >= 1 << 24)
    throw InputError("annealing needs at least 1 step and fewer than 16,777,216");
  if (config.chains < 1 || config.leapfrog < 1)
    throw InputError("annealing needs at least one chain and one leapfrog step");
}

std::vector<double> annealing_schedule(int steps) {
  std::vector<double> schedule(steps + 1);
  for (int k = 0; k <= steps; ++k) schedule[k] = std::pow(static_cast<double>(k) / steps, 3);
  return schedule;
}

// Under the prior a step of D^(−1/4) is accepted most of the time. Over a schedule step sizes fall by a few factors of
// e, so they must adapt faster if there are fewer steps.
StepSizeRule annealing_step_sizes(int dimension, int steps) {
  return {std::pow(static_cast<double>(dimension), -0.25), 0.9, std::clamp(50.0 / steps, 0.02, 0.5)};
}

ImportanceEstimate annealed_estimate(std::span<const double> log_weight, AnnealingPass pass) {
  if (pass != AnnealingPass::backward) return importance_estimate(log_weight);
  std::vector<double> inverse(log_weight.begin(), log_weight.end());
  for (double& w : inverse) w = -w;
  ImportanceEstimate estimate = importance_estimate(inverse);
  estimate.log_likelihood = -estimate.log_likelihood;
  return estimate;
}

std::vector<AnnealedPoint> annealed_points(const AnnealedChains& chains) {
  const auto each = static_cast<std::size_t>(chains.each);
  std::vector<AnnealedPoint> points(chains.log_weight.size() / each);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].estimate = annealed_estimate(chains.log_weight.subspan(i * each, each), chains.pass);
    for (std::size_t c = i * each; c < (i + 1) * each; ++c) {
      points[i].acceptance += chains.acceptance[c] / (chains.each * std::max(1, chains.steps - 1));
      points[i].rejected_nonfinite += chains.nonfinite[c];
    }
  }
  return points;
}

// Chains on their way through the temperatures.
struct Annealer::Run {
  Run(const Target& base, const AnnealingConfig& config, int points, int chains_of_point, std::uint32_t first_point,
      AnnealingPass which)
      : each(chains_of_point),
        first(first_point * static_cast<std::uint32_t>(each)),
        pass(which),
        target(base, each),
        kernel({config.leapfrog}),
        chains(base.dimension(), points * each),
        log_weight(chains.value.size()),
        acceptance(chains.value.size()),
        nonfinite(chains.value.size()) {}

  void draw_prior(const RandomSource& random) {
    const ChainsView view = chains.view(first);
    for (int c = 0; c < view.count(); ++c)
      random.normals({Purpose::draw, iteration_of(pass), view.datum(c)}, view.z.column(c));
  }

  void evaluate() {
    std::vector<std::uint32_t> names;
    const ChainsView view = chains.view(first);
    for (int c = 0; c < view.count(); ++c) names.push_back(view.datum(c));
    target.evaluate(chains.z, Want::both, chains.value, chains.gradient, names);
  }

  // w ← w p(x | z)^share at the current points
  void weigh(double share) {
    for (int c = 0; c < chains.z.cols(); ++c)
      log_weight[c] += share * Retemper{beta, beta}.log_likelihood(chains.value[c], log_prior(chains.z.column(c)));
  }

  void set_temperature(double to) {
    const Retemper change{beta, to};
    for (int c = 0; c < chains.z.cols(); ++c) {
      chains.value[c] = change.value(chains.value[c], log_prior(chains.z.column(c)));
      for (int d = 0; d < chains.z.rows(); ++d)
        chains.gradient(d, c) = change.gradient(chains.gradient(d, c), chains.z(d, c));
    }
    target.set_temperature(to);
    beta = to;
  }

  // One HMC step. Returns the accepted fraction, or NaN if no chain could move.
  double step(int level, double step_size, const RandomSource& random) {
    kernel.step(target,
                {.random = random,
                 .iteration = iteration_of(pass),
                 .step = static_cast<std::uint32_t>(level),
                 .step_size = step_size},
                chains.view(first));
    int accepted = 0, proposals = 0;
    for (int c = 0; c < chains.z.cols(); ++c) {
      acceptance[c] += chains.acceptance[c];
      nonfinite[c] += chains.outcome[c] == Outcome::nonfinite;
      accepted += chains.outcome[c] == Outcome::accepted;
      proposals += chains.outcome[c] != Outcome::outside;
    }
    return proposals > 0 ? static_cast<double>(accepted) / proposals : std::nan("");
  }

  std::vector<AnnealedPoint> points(int steps) const {
    return annealed_points({.log_weight = log_weight,
                            .acceptance = acceptance,
                            .nonfinite = nonfinite,
                            .each = each,
                            .steps = steps,
                            .pass = pass});
  }

  int each;  // chains per datum
  std::uint32_t first;
  AnnealingPass pass;
  TemperedTarget target;
  Hmc kernel;
  Chains chains;
  double beta = 1;  // of the current values and gradients
  std::vector<double> log_weight, acceptance;
  std::vector<int> nonfinite;
};

Annealer::Annealer(const Target& target, const AnnealingConfig& config, const RandomSource& random)
    : target_(target), config_(config), random_(random), schedule_(annealing_schedule(config.steps)) {
  check(config);
}

// ε_1 … ε_(K−1), from one chain per datum.
std::vector<double> Annealer::tuned(std::uint32_t first, int count) {
  const StepSizeRule rule = annealing_step_sizes(target_.dimension(), config_.steps);
  Run run(target_, config_, count, 1, first, AnnealingPass::pilot);
  run.draw_prior(random_);
  run.evaluate();
  std::vector<double> step_size(config_.steps, rule.start);
  for (int k = 1; k < config_.steps; ++k) {
    run.set_temperature(schedule_[k]);
    const double accepted = run.step(k, step_size[k], random_);
    if (k + 1 == config_.steps) break;
    step_size[k + 1] = std::isnan(accepted) ? step_size[k] : rule.next(step_size[k], accepted);
  }
  return step_size;
}

std::vector<AnnealedPoint> Annealer::forward(std::uint32_t first, int count, int wanted) {
  const std::vector<double> step_size = tuned(first, count);
  Run run(target_, config_, wanted, config_.chains, first, AnnealingPass::forward);
  run.draw_prior(random_);
  run.evaluate();
  for (int k = 1; k <= config_.steps; ++k) {
    run.weigh(schedule_[k] - schedule_[k - 1]);
    if (k == config_.steps) break;
    run.set_temperature(schedule_[k]);
    run.step(k, step_size[k], random_);
  }
  return run.points(config_.steps);
}

std::vector<AnnealedPoint> Annealer::backward(std::uint32_t first, MatrixView<const double> posterior_draws,
                                              int wanted) {
  const std::vector<double> step_size = tuned(first, posterior_draws.cols());
  Run run(target_, config_, wanted, config_.chains, first, AnnealingPass::backward);
  for (int c = 0; c < run.chains.z.cols(); ++c) copy(posterior_draws.column(c / run.each), run.chains.z.column(c));
  run.evaluate();
  for (int k = config_.steps; k >= 1; --k) {
    run.weigh(schedule_[k] - schedule_[k - 1]);
    if (k == 1) break;
    run.set_temperature(schedule_[k - 1]);
    run.step(k - 1, step_size[k - 1], random_);
  }
  return run.points(config_.steps);
}

AnnealingSummary summarize(std::span<const AnnealedPoint> points, const AnnealingConfig& config) {
  AnnealingSummary summary;
  summary.points = static_cast<int>(points.size());
  Moments log_likelihood, effective, acceptance;
  double variance = 0;
  for (const AnnealedPoint& point : points) {
    summary.points_without_weight += !std::isfinite(point.estimate.log_likelihood);
    log_likelihood.add(point.estimate.log_likelihood);
    effective.add(point.estimate.effective_samples);
    acceptance.add(point.acceptance);
    summary.rejected_nonfinite += point.rejected_nonfinite;
    variance += relative_variance(point.estimate, config.chains);
  }
  summary.log_likelihood =
      summary.points_without_weight > 0 ? Estimate{-infinity, std::nan("")} : log_likelihood.estimate();
  summary.chain_se = std::sqrt(variance) / std::max(1, summary.points);
  summary.effective_chains = effective.mean();
  summary.acceptance = acceptance.mean();
  return summary;
}

}  // namespace hone
