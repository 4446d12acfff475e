#include "hone/engine/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "hone/base/error.hpp"
#include "hone/engine/evaluation_parts.hpp"

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
  if ((static_cast<std::int64_t>(task.first) + data) * task.config.chains > 0xFFFF'FFFFll)
    throw InputError("annealing can have at most 4,294,967,295 chains over all data");
  if (task.backward() && task.posterior_draws.cols() != data)
    throw std::logic_error("backward annealing needs one draw per datum");
}

ImportanceEstimate WeightSums::estimate(double draws) const {
  if (sum == 0) return {-infinity, 0};
  return {top + std::log(sum / draws), sum * sum / squares};
}

PointEvaluation combine(const std::array<std::optional<ProposalEstimates>, proposal_count>& proposals,
                        const ImportanceEstimate& mixture) {
  PointEvaluation point;
  point.best = -infinity;
  point.mixture = mixture;
  double best_pilot = -infinity;
  for (int j = 0; j < proposal_count; ++j) {
    if (!proposals[j]) continue;
    point.proposal[j] = proposals[j]->all;
    point.best = std::max(point.best, proposals[j]->all.log_likelihood);
    if (proposals[j]->pilot < best_pilot) continue;
    best_pilot = proposals[j]->pilot;
    point.pilot = proposals[j]->rest;
  }
  return point;
}

PointEvaluation combine(const std::array<ProposalDraws, proposal_count>& draws,
                        const std::array<bool, proposal_count>& used) {
  std::array<std::optional<ProposalEstimates>, proposal_count> proposals;
  for (int j = 0; j < proposal_count; ++j) {
    if (!used[j]) continue;
    const std::vector<double> weights = log_weights(draws[j], j);
    const auto pilot = std::span(weights).first(pilot_draws(static_cast<int>(weights.size())));
    proposals[j] = {.all = importance_estimate(weights),
                    .pilot = importance_estimate(pilot).log_likelihood,
                    .rest = importance_estimate(std::span(weights).subspan(pilot.size())).log_likelihood};
  }
  return combine(proposals, importance_estimate(mixture_weights(draws, used)));
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
