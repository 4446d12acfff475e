#include "hone/engine/cpu/evaluate.hpp"

#include <cmath>
#include <numeric>

#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/latent/latent_target.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/target/interruptible.hpp"

namespace hone {
namespace {

// Means and standard deviations of the three proposals, before widening; (D, n) each.
struct Proposals {
  Matrix<double> q_mean, q_sd, chain_mean, chain_sd;

  std::span<const double> mean(int proposal, int point) const {
    return proposal == 0 ? q_mean.column(point) : chain_mean.column(point);
  }
  std::span<const double> sd(int proposal, int point) const {
    return proposal == 2 ? chain_sd.column(point) : q_sd.column(point);
  }
};

template <class Real>
class GroupEvaluator {
 public:
  GroupEvaluator(const Model<Real>& model, const EvaluationConfig& config, const EvaluationChain& chain,
                 const RandomSource& random)
      : model_(model), config_(config), chain_(chain), random_(random) {}

  // Evaluates the wanted data of a group. Calls `beat` now and then.
  void evaluate(const DataSet& data, const DataGroup& group, std::span<PointEvaluation> out,
                const std::function<void()>& beat) {
    beat_ = beat;
    Minibatch<Real> minibatch = model_.minibatch(group.count());
    std::vector<int> indices(group.count());
    std::iota(indices.begin(), indices.end(), group.begin);
    model_.expand(data, indices, 0, group.count(), minibatch);
    const Proposals proposals = find_proposals(minibatch, group);
    for (int i = 0; i < static_cast<int>(out.size()); ++i) {
      out[i] = sample(minibatch, proposals, i, static_cast<std::uint32_t>(config_.first + group.begin + i));
      if (exact()) out[i].exact = model_.exact_log_likelihood(minibatch, i);
    }
  }

 private:
  bool exact() const {
    const DecoderConfig& decoder = model_.decoder().config();
    return decoder.density == Density::gaussian && decoder.hidden.empty();
  }

  Proposals find_proposals(const Minibatch<Real>& minibatch, const DataGroup& group) const {
    const int latent = model_.decoder().latent(), count = group.count();
    Proposals p{.q_mean = Matrix<double>(latent, count),
                .q_sd = Matrix<double>(latent, count),
                .chain_mean = Matrix<double>(latent, count),
                .chain_sd = Matrix<double>(latent, count)};
    model_.q(minibatch).moments_per_datum(p.q_mean, p.q_sd);
    p.chain_mean = p.q_mean;
    p.chain_sd = p.q_sd;
    if (config_.proposals[1] || config_.proposals[2]) run_chains(minibatch, group, p);
    return p;
  }

  // From q's mean: burn_in steps that adapt the step size, then `kept` steps whose moments count.
  void run_chains(const Minibatch<Real>& minibatch, const DataGroup& group, Proposals& p) const {
    const auto first = static_cast<std::uint32_t>(config_.first + group.begin);
    LatentTarget<Real> target(model_.decoder(), model_.gradients());
    target.set_data(minibatch, first);
    const int count = group.count(), latent = target.dimension();
    Chains chains(latent, count);
    chains.z = p.q_mean;
    std::vector<std::uint32_t> datum(count);
    std::iota(datum.begin(), datum.end(), first);
    const InterruptibleTarget interruptible(target, beat_);
    interruptible.evaluate(chains.z, Want::both, chains.value, chains.gradient, datum);
    Team alone(1);
    Refiner adapting(chain_.kernel,
                     {.steps = std::max(1, config_.burn_in),
                      .adapt = Adapt::inside,
                      .step_size = chain_.step_size,
                      .acceptance = chain_.acceptance,
                      .adapting = config_.burn_in},
                     alone);
    if (config_.burn_in > 0) adapting.refine(interruptible, chains.view(first), count, assessment_iteration, random_);
    Refiner still(chain_.kernel,
                  {.steps = 1, .adapt = Adapt::off, .step_size = adapting.step_size(), .acceptance = chain_.acceptance},
                  alone);
    std::vector<Moments> moments(static_cast<std::size_t>(latent) * static_cast<std::size_t>(count));
    for (int step = 1; step <= config_.kept; ++step) {
      still.refine(interruptible, chains.view(first), count, assessment_iteration + static_cast<std::uint32_t>(step),
                   random_);
      for (std::size_t i = 0; i < moments.size(); ++i) moments[i].add(chains.z.view().flat()[i]);
    }
    for (std::size_t i = 0; i < moments.size(); ++i) {
      p.chain_mean.view().flat()[i] = moments[i].mean();
      p.chain_sd.view().flat()[i] = std::max(moments[i].sd(), smallest_chain_sd);
    }
  }

  PointEvaluation sample(const Minibatch<Real>& minibatch, const Proposals& p, int point, std::uint32_t datum) {
    const int latent = model_.decoder().latent();
    std::array<ProposalDraws, proposal_count> draws;
    for (int j = 0; j < proposal_count; ++j) {
      if (!config_.proposals[j]) continue;
      draws[j].log_joint.resize(config_.samples);
      for (auto& density : draws[j].log_density) density.resize(config_.samples);
    }
    constexpr int block = evaluation_block;
    noise_ = z_ = Matrix<double>(latent, block);
    const std::vector<std::uint32_t> column(block, static_cast<std::uint32_t>(point));
    for (int begin = 0; begin < config_.samples; begin += block) {
      const int size = std::min(block, config_.samples - begin);
      for (int j = 0; j < proposal_count; ++j) {
        if (!config_.proposals[j]) continue;
        beat_();
        const auto sequence = static_cast<std::uint32_t>(begin / block * proposal_count + j);
        random_.normals({Purpose::proposal, assessment_iteration, datum, sequence},
                        noise_.view().columns(0, size).flat());
        const auto mean = p.mean(j, point), sd = p.sd(j, point);
        for (int s = 0; s < size; ++s)
          for (int d = 0; d < latent; ++d) z_(d, s) = mean[d] + config_.widening * sd[d] * noise_(d, s);
        model_.decoder().log_joint({z_.view().columns(0, size), minibatch, std::span(column).first(size)}, Want::value,
                                   std::span(draws[j].log_joint).subspan(begin, size), {});
        for (double& value : std::span(draws[j].log_joint).subspan(begin, size))
          if (!std::isfinite(value)) value = -infinity;  // no weight: the estimate stays a lower bound
        for (int i = 0; i < proposal_count; ++i)
          if (config_.proposals[i])
            log_density(p.mean(i, point), p.sd(i, point), size,
                        std::span(draws[j].log_density[i]).subspan(begin, size));
      }
    }
    return combine(draws, config_.proposals);
  }

  void log_density(std::span<const double> mean, std::span<const double> sd, int size, std::span<double> out) const {
    double constant = -0.5 * static_cast<double>(mean.size()) * log_two_pi;
    for (const double s : sd) constant -= std::log(config_.widening * s);
    for (int c = 0; c < size; ++c) {
      double quadratic = 0;
      const std::span<const double> z = z_.column(c);
      for (std::size_t d = 0; d < mean.size(); ++d) quadratic += square((z[d] - mean[d]) / (config_.widening * sd[d]));
      out[c] = constant - 0.5 * quadratic;
    }
  }

  const Model<Real>& model_;
  const EvaluationConfig& config_;
  const EvaluationChain& chain_;
  const RandomSource& random_;
  std::function<void()> beat_;
  Matrix<double> noise_, z_;
};

}  // namespace

template <class Real>
std::vector<PointEvaluation> evaluate_points(const Model<Real>& model, const DataSet& data,
                                             const EvaluationConfig& config, const EvaluationChain& chain,
                                             const RandomSource& random, const Workers& workers,
                                             const std::function<void(int)>& progress) {
  model.check(data);
  check(config);
  std::vector<PointEvaluation> points(std::min(data.size(), config.points.value_or(data.size())));
  const Groups groups{evaluation_group, data.size(), static_cast<int>(points.size())};
  for_groups(workers, groups, std::span(points), progress, [&] {
    return [&, evaluator = GroupEvaluator<Real>(model, config, chain, random)](
               const DataGroup& group, const std::function<void()>& beat) mutable {
      evaluator.evaluate(data, group, std::span(points).subspan(group.begin, group.wanted), beat);
    };
  });
  return points;
}

template std::vector<PointEvaluation> evaluate_points(const Model<float>&, const DataSet&, const EvaluationConfig&,
                                                      const EvaluationChain&, const RandomSource&, const Workers&,
                                                      const std::function<void(int)>&);
template std::vector<PointEvaluation> evaluate_points(const Model<double>&, const DataSet&, const EvaluationConfig&,
                                                      const EvaluationChain&, const RandomSource&, const Workers&,
                                                      const std::function<void(int)>&);

}  // namespace hone
