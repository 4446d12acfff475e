#include "hone/engine/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

std::vector<double> log_weights(const ProposalDraws& draws, int proposal) {
  std::vector<double> weights(draws.log_joint.size());
  for (std::size_t s = 0; s < weights.size(); ++s) weights[s] = draws.log_joint[s] - draws.log_density[proposal][s];
  return weights;
}

// Weighs every draw against the equal mixture of the proposals in use; each made the same number of draws.
std::vector<double> mixture_weights(const std::array<ProposalDraws, proposal_count>& draws,
                                    const std::array<bool, proposal_count>& used) {
  std::vector<double> weights, density;
  for (int j = 0; j < proposal_count; ++j) {
    if (!used[j]) continue;
    for (std::size_t s = 0; s < draws[j].log_joint.size(); ++s) {
      density.clear();
      for (int i = 0; i < proposal_count; ++i)
        if (used[i]) density.push_back(draws[j].log_density[i][s]);
      weights.push_back(draws[j].log_joint[s] - log_sum_exp(density) + std::log(static_cast<double>(density.size())));
    }
  }
  return weights;
}

}  // namespace

void check(const EvaluationConfig& config) {
  if (config.samples < 2 || config.kept < 2 || config.burn_in < 0 || !(config.widening > 0) ||
      !(config.proposals[0] || config.proposals[1] || config.proposals[2]))
    throw InputError("an evaluation needs at least 2 samples, 2 kept steps and one proposal");
  if (config.points && *config.points < 1) throw InputError("an evaluation needs at least one point");
}

void check(const AnnealingTask& task, int data) {
  check(task.config);
  if (task.points && *task.points < 1) throw InputError("annealing needs at least one point");
  if (static_cast<std::int64_t>(data) * task.config.chains > 0xFFFF'FFFFll)
    throw InputError("annealing can have at most 4,294,967,295 chains over all data");
  if (task.backward() && task.posterior_draws.cols() != data)
    throw std::logic_error("backward annealing needs one draw per datum");
}

PointEvaluation combine(const std::array<ProposalDraws, proposal_count>& draws,
                        const std::array<bool, proposal_count>& used) {
  PointEvaluation point;
  point.best = -infinity;
  double best_pilot = -infinity;
  for (int j = 0; j < proposal_count; ++j) {
    if (!used[j]) continue;
    const std::vector<double> weights = log_weights(draws[j], j);
    point.proposal[j] = importance_estimate(weights);
    point.best = std::max(point.best, point.proposal[j].log_likelihood);
    const auto pilot = std::span(weights).first(std::max<std::size_t>(1, weights.size() / 10));
    const double seen = importance_estimate(pilot).log_likelihood;
    if (seen < best_pilot) continue;
    best_pilot = seen;
    point.pilot = importance_estimate(std::span(weights).subspan(pilot.size())).log_likelihood;
  }
  point.mixture = importance_estimate(mixture_weights(draws, used));
  return point;
}

EvaluationSummary summarize(std::span<const PointEvaluation> points) {
  EvaluationSummary summary;
  summary.points = static_cast<int>(points.size());
  const auto over_points = [&](auto quantity) {
    Moments moments;
    for (const PointEvaluation& point : points) {
      const double value = quantity(point);
      if (value == -infinity) return Estimate{-infinity, std::nan("")};
      moments.add(value);
    }
    return moments.estimate();
  };
  for (int j = 0; j < proposal_count; ++j) {
    summary.proposal[j] = over_points([j](auto& p) { return p.proposal[j].log_likelihood; });
    summary.effective_samples[j] = over_points([j](auto& p) { return p.proposal[j].effective_samples; }).mean;
  }
  for (const PointEvaluation& point : points) summary.points_without_weight += point.best == -infinity;
  summary.best = over_points([](auto& p) { return p.best; });
  summary.pilot = over_points([](auto& p) { return p.pilot; });
  summary.mixture = over_points([](auto& p) { return p.mixture.log_likelihood; });
  summary.mixture_effective_samples = over_points([](auto& p) { return p.mixture.effective_samples; }).mean;
  if (!points.empty() && points.front().exact) summary.exact = over_points([](auto& p) { return *p.exact; });
  return summary;
}

}  // namespace hone
