#include "hone/fit/checked_fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "hone/assess/chain_checks.hpp"
#include "hone/base/error.hpp"
#include "hone/base/format.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/scalar.hpp"
#include "hone/fit/compare.hpp"
#include "hone/fit/moment_match.hpp"
#include "hone/fit/natural_values.hpp"
#include "hone/fit/parameter_summary.hpp"
#include "hone/fit/q_geometry.hpp"
#include "hone/fit/shared_fit.hpp"
#include "hone/fit/super_starts.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// Parts of the seed; stages of the fit have the small numbers.
enum Part : std::uint64_t {
  part_starts = 1u << 20,
  part_refine,
  part_checks,
  part_masses,
  part_elbo,
  part_explore,  // and one for every pass of it
  part_table = part_explore + 64
};

class CheckedFitter {
 public:
  CheckedFitter(const Posterior& posterior, const CheckedFitConfig& config, const CheckedFitProgress& progress,
                const SharedPosterior* shared)
      : posterior_(posterior),
        target_(posterior, config.fit.budget.stop),
        config_(config),
        progress_(progress),
        shared_(shared),
        natural_(posterior, config.fit.budget.stop) {}
  CheckedFit run();

 private:
  void fit();
  bool follows_chains() const;
  void explore();
  double follow(const RefinedDraws& seen);
  RefinedConfig refined_config(std::uint64_t seed) const;
  int pilot_steps(const RefinedConfig& config) const;
  void refine();
  void constrain();
  Matrix<double> over_z(MatrixView<const double> e) const;
  template <class Work>
  auto until_stop(Work&& work) -> std::optional<decltype(work())>;
  void shorten(RefinedConfig& config);
  void judge_interrupted();

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }
  void say(const std::string& text) const {
    if (progress_) progress_(text, target_.count());
  }
  std::uint64_t seed(Part part) const { return derived_seed(config_.fit.seed, part); }

  const Posterior& posterior_;
  CountedTarget target_;
  const CheckedFitConfig& config_;
  const CheckedFitProgress& progress_;
  const SharedPosterior* shared_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  CheckedFit result_;
  SuperStarts supers_;   // over e
  ChainStates earlier_;  // of the last pass of the super-chains, over e
  std::shared_ptr<const Kernel> kernel_;
  double step_size_ = 0, most_step_size_ = 1e300;
  double time_ = 0;         // of trajectories, over e
  bool chains_ran_ = true;  // a round of the final refinement was completed
  NaturalValues natural_;
  Matrix<double> natural_of_q_, natural_before_;  // of many draws of q; of the states before the refined draws
};

void CheckedFitter::fit() {
  PosteriorFitConfig config = config_.fit;
  const bool gaussian = !config.own_family && config.family != QKind::mixture;
  const bool refines_here = gaussian && config.objective && config.objective->refines() && !follows_chains();
  if (config.budget.gradients > 0)
    config.budget.gradients = std::max<std::int64_t>(1, config.budget.gradients / (refines_here ? 4 : 16));
  config.budget.seconds /= 3;
  constexpr int rough = 4;  // stages by KL: all that is needed where q follows chains afterwards
  if (refines_here || follows_chains()) config.kl_stages = std::min(config.kl_stages, rough);
  if (follows_chains()) config.objective = nullptr;  // explore() follows it
  say("searching from the starts");
  const auto observe = [this](const PosteriorFit& fit, const Stage* stage) {
    target_.heed(false);  // from here on a stop ends the fit with the q that it has
    if (!stage && config_.on_starts) config_.on_starts(fit);
    if (stage)
      say(detail::format("{}, {} iterations, q changed by {:.2g}", stage->objective, stage->iterations, stage->change));
  };
  try {
    target_.heed(true);
    result_.fit = fit_posterior(target_, config, observe, shared_);
  } catch (const NowhereFinite& error) {  // in the model's own words, where it has some
    const std::string complaint = posterior_.complaint();
    if (complaint.empty()) throw;
    throw NowhereFinite(detail::format("{}. The model says: {}", error.what(), complaint));
  } catch (const RunsAway& error) {
    throw RunsAway(error.coordinate, posterior_.coordinate_names()[error.coordinate]);
  }
  if (result_.fit.q.family->components() > 1) set_mode_weights(target_, seed(part_masses), result_.fit.q);
  result_.fit_seconds = seconds();
}

// Whether an objective is the VCD itself, without a ramp, a bound or an estimator that the caller chose: moment
// matching is what it comes to as t grows. Any other α has another minimum.
bool is_plain_vcd(const Objective* objective) {
  const std::optional<ObjectiveTerms> terms = objective ? objective->terms() : std::nullopt;
  return terms && terms->first && terms->first_term == FirstTerm::reparameterized && terms->start_score &&
         terms->refined_score && terms->alpha == 1 && terms->ramp.until == 0 && std::isinf(terms->score_bound);
}

// Whether q minimises the VCD by the states of the chains that are run anyway: a Gaussian with the plain VCD. A
// mixture, a family of the caller's own and any other objective are fitted by stochastic gradients, in fit().
bool CheckedFitter::follows_chains() const {
  const PosteriorFitConfig& fit = config_.fit;
  return is_plain_vcd(fit.objective.get()) && !fit.own_family && fit.family != QKind::mixture &&
         (result_.fit.starts.empty() || result_.fit.q.kind != QKind::mixture);
}

RefinedConfig CheckedFitter::refined_config(std::uint64_t seed) const {
  RefinedConfig config;
  config.kernel = kernel_ ? kernel_ : config_.fit.kernel;
  config.first_step_size = step_size_;
  config.first_time = time_;
  config.most_step_size = most_step_size_;
  config.acceptance = config_.fit.acceptance;
  config.chains_per_start = config_.chains_per_start;
  config.draws = config_.draws;
  config.steps = config_.fit.steps;
  config.error = 0.5 * config_.error;
  config.coordinates = config_.coordinates;
  config.whitening = &result_.fit.q.whitening;
  if (earlier_.count() > 0) config.earlier = &earlier_;
  config.seed = seed;
  config.threads = config_.fit.threads;
  const Budget& budget = config_.fit.budget;
  config.stop = budget.stop;
  if (budget.gradients > 0) config.gradients = std::max<std::int64_t>(1, budget.gradients - target_.count());
  if (budget.seconds > 0) {  // at the pace so far
    const double pace = static_cast<double>(target_.count()) / std::max(1e-6, seconds());
    const double left = std::max(1.0, pace * (budget.seconds - seconds()));
    config.gradients = budget.gradients > 0 ? std::min(config.gradients, static_cast<std::int64_t>(left))
                                            : static_cast<std::int64_t>(left);
  }
  return config;
}

// The longest mean trajectory that pilots may try, where q leaves correlations of the posterior in its coordinates: 32
// steps of the super-chains by trajectories of this length take an eighth of the budget.
int CheckedFitter::pilot_steps(const RefinedConfig& config) const {
  if (result_.fit.q.whitening.is_dense()) return 0;
  constexpr double far = 512, near = 32, share = 0.125, steps = 32;
  if (config.gradients == 0) return static_cast<int>(far);
  const double chains = static_cast<double>(supers_.mode.size()) * config.chains_per_start;
  return static_cast<int>(std::clamp(share * static_cast<double>(config.gradients) / (chains * steps), near, far));
}

// Moves q to the best of the candidates that the states suggest, and the super-chains' starts with it. Returns the
// largest decrease of the VCD that a candidate may have.
double CheckedFitter::follow(const RefinedDraws& seen) {
  FittedQ& q = result_.fit.q;
  Team team(config_.fit.threads);
  BestQ best = best_q(target_, q, seen, seed(part_elbo), team);
  supers_.z = Matrix<double>(target_.dimension(), seen.super_ends.cols());
  std::vector<double> z(target_.dimension());
  const auto moved = [&](std::span<const double> from, std::span<double> to) {
    q.whitening.to_z(from, z);
    best.whitening.to_e(z, to);
  };
  for (int c = 0; c < supers_.z.cols(); ++c) moved(seen.super_ends.column(c), supers_.z.column(c));
  earlier_ = ChainStates(target_.dimension(), seen.states.chains, seen.states.per_chain());
  for (int c = 0; c < earlier_.count(); ++c) moved(seen.states.z.column(c), earlier_.z.column(c));
  result_.fit.stages.push_back({.objective = config_.fit.objective->name(),
                                .iterations = static_cast<std::uint32_t>(seen.steps),
                                .change = best.gain,
                                .acceptance = seen.checks.acceptance,
                                .step_size = seen.step_size,
                                .gradients = target_.count()});
  q.whitening = std::move(best.whitening);
  return best.possible;
}

// Runs the super-chains for longer and longer, and q follows them as long as that lowers its VCD.
void CheckedFitter::explore() {
  supers_ = super_starts(target_, result_.fit, {seed(part_starts), seed(part_elbo)}, result_.findings.left_out);
  if (!follows_chains()) return;
  constexpr int passes = 3, most_passes = 6, least_chains = 32;  // the last: of a refinement
  constexpr double settled = 0.01;                               // of the VCD, per dimension
  double fell = infinity;                                        // how much the VCD certainly fell in the last pass
  const Budget& budget = config_.fit.budget;
  int steps = std::max(4, config_.fit.steps);
  result_.fit.converged = false;
  const double much = std::max(1.0, settled * target_.dimension());
  bool arriving = false;  // the last pass had few states, or they moved, which the VCD does not show in many dimensions
  const auto goes_on = [&](int pass) { return pass < passes || (pass < most_passes && (fell > much || arriving)); };
  for (int pass = 0; goes_on(pass) && !result_.fit.converged; ++pass) {
    if (pass > 0 && pass < passes) steps *= 2;
    RefinedConfig config = refined_config(derived_seed(config_.fit.seed, part_explore + pass));
    // A pass must fit into a quarter of what is left with five leapfrog steps, and into all of it with the known
    // number, but for what the refinement spends at least, with trajectories twice as long.
    const double trajectories = static_cast<double>(supers_.mode.size()) * config.chains_per_start * steps;
    const double known = kernel_ ? kernel_->evaluations_per_step() : 0;
    const double least = 2.0 * static_cast<double>(least_chains) * std::max(4, config_.fit.steps) * known;
    const double cost = std::max(trajectories * 5 / 0.25, trajectories * known + least);
    if ((budget.stop && *budget.stop) || (config.gradients > 0 && cost > static_cast<double>(config.gradients))) break;
    config.pairs = 0;
    config.keep = Keep::gradients;
    config.steps = config.most_steps = steps;
    config.pilot_steps = pilot_steps(config);
    const FittedQ& q = result_.fit.q;
    const WhitenedTarget whitened(target_, q.whitening);
    const double log_det = q.whitening.log_det();
    RefinedDraws seen;
    const std::optional<double> gain = until_stop([&] {
      seen = refine_draws(whitened, *q.family, supers_, config);
      return follow(seen);
    });
    if (!gain) break;
    kernel_ = seen.kernel;
    step_size_ = seen.step_size;
    most_step_size_ = seen.most_step_size;
    fell = result_.fit.stages.back().change;
    arriving = seen.checks.effective < least_effective ||
               (target_.dimension() > most_full_dimensions && seen.checks.drift > seen.checks.drift_limit);
    if (fell > much) {  // other coordinates, other step sizes
      const double shrank = std::exp((log_det - result_.fit.q.whitening.log_det()) / target_.dimension());
      if (const HmcConfig* const hmc = seen.kernel->as_hmc()) time_ = shrank * hmc->leapfrog * seen.step_size;
      kernel_ = nullptr;
      step_size_ = 0;
    }
    if (seen.adapted_coordinates) {  // the next pass finds its own, and what suits them
      kernel_ = nullptr;
      step_size_ = 0;
      most_step_size_ = 1e300;
    }
    say(detail::format("{} steps of the chains, nested R-hat {:.3f}, q's VCD fell by at most {:.2g}", steps,
                       seen.checks.nested_rhat, *gain));
    result_.fit.converged = *gain < settled * target_.dimension() && seen.checks.nested_rhat < 1.1 && !arriving;
  }
  result_.fit.gradients = target_.count();
}

void CheckedFitter::refine() {
  const FittedQ& q = result_.fit.q;
  const WhitenedTarget whitened(target_, q.whitening);
  RefinedConfig config = refined_config(seed(part_refine));
  constexpr int draws_over_modes = 1600;  // chains stay in their modes: only their number makes the error small
  config.pairs = q.family->components() > 1 ? draws_over_modes : 8 * config_.chains_per_start;
  config.q_draws = std::max(config.q_draws, config.pairs);
  config.pilot_steps = pilot_steps(config);
  config.printed = [this](MatrixView<const double> e) { return natural_.remembered(over_z(e)); };
  config.parameters = static_cast<int>(posterior_.parameter_count());
  std::optional<RefinedDraws> refined = until_stop([&] {
    return refine_draws(whitened, *q.family, supers_, config, [this](int steps, double rhat) {
      say(detail::format("refining, {} steps, nested R-hat {:.3f}", steps, rhat));
    });
  });
  const std::atomic<bool>* const stop = config_.fit.budget.stop;
  result_.interrupted = stop && *stop;
  if (!refined) {
    shorten(config);
    refined = refine_draws(whitened, *q.family, supers_, config);
  }
  result_.refined = std::move(*refined);
}

// The work's result, or nothing if it was stopped.
template <class Work>
auto CheckedFitter::until_stop(Work&& work) -> std::optional<decltype(work())> {
  target_.heed(true);
  try {
    auto result = work();
    target_.heed(false);
    return result;
  } catch (const Stopped&) {
    target_.heed(false);
    return std::nullopt;
  }
}

// Settings for as few and as short chains as possible: the caller has asked to stop.
void CheckedFitter::shorten(RefinedConfig& config) {
  chains_ran_ = false;
  config.coordinates = ChainCoordinates::affine;
  config.pairs = 16;
  config.q_draws = 100;
  config.steps = config.most_steps = 4;
  if (supers_.z.cols() == static_cast<int>(supers_.mode.size()) * config_.chains_per_start) {  // one start per chain
    Matrix<double> z(supers_.z.rows(), static_cast<int>(supers_.mode.size()));
    for (int k = 0; k < z.cols(); ++k) copy(supers_.z.column(k * config_.chains_per_start), z.column(k));
    supers_.z = std::move(z);
  }
  config.chains_per_start = 2;
}

Matrix<double> CheckedFitter::over_z(MatrixView<const double> e) const {
  Matrix<double> z(e.rows(), e.cols());
  result_.fit.q.whitening.to_z(e, z);
  return z;
}

// Values on the natural scale: of the draws, and what the table of values needs.
void CheckedFitter::constrain() {
  RefinedDraws& r = result_.refined;
  constexpr int table_draws = 4000;  // of q, for means and sds alone: they cost no gradients
  try {
    result_.natural_refined = natural_.taken(over_z(r.states.z));
    result_.natural_q = natural_.of(over_z(r.z0));
    natural_before_ = natural_.of(over_z(r.before.z));
    natural_of_q_ =
        natural_.of(over_z(independent_draws(*result_.fit.q.family, table_draws, PhiloxSource(seed(part_table)))));
  } catch (const Stopped&) {
    result_.interrupted = true;
    natural_.at_any_price();
    thin_out(r, natural_.affordable());
    result_.natural_refined = natural_.taken(over_z(r.states.z));
    result_.natural_q = natural_of_q_ = natural_.of(over_z(r.z0));
    natural_before_ = natural_.of(over_z(r.before.z));
  }
}

void CheckedFitter::judge_interrupted() {
  Judgement& judgement = result_.judgement;
  if (!chains_ran_) {
    if (judgement.verdict != Verdict::trust_neither) judgement.reasons.clear();
    judgement.verdict = Verdict::trust_neither;
    judgement.reasons.insert(judgement.reasons.begin(), "the fit was interrupted before its chains had run");
  }
  judgement.notes.push_back("the fit was stopped early: this result rests on the draws that it had by then");
}

CheckedFit CheckedFitter::run() {
  fit();
  explore();
  refine();
  say("comparing q with the refined draws");
  constrain();
  compare_with_q(posterior_, config_, seed(part_checks), result_);
  result_.parameter_count = posterior_.parameter_count();
  summarize(posterior_, natural_of_q_, natural_before_, result_);
  const bool modes = result_.fit.q.kind == QKind::mixture && result_.fit.modes > 1;  // then no super-chain's are used
  const std::vector<double> rhats =
      value_rhats(result_.natural_refined, result_.refined.states, result_.refined.chains_per_start);
  for (std::size_t k = 0; k < rhats.size(); ++k) result_.parameters[k].rhat = modes ? std::nan("") : rhats[k];
  result_.findings.natural = natural_checks(result_, natural_of_q_);
  result_.judgement = judge(result_.findings, config_.tolerances);
  if (std::string note = not_finite(result_.natural_refined, posterior_.names()); !note.empty())
    result_.judgement.notes.push_back(std::move(note));
  if (result_.interrupted) judge_interrupted();
  result_.gradients = target_.count();
  result_.seconds = seconds();
  return std::move(result_);
}

}  // namespace

CheckedFit fit_and_check(const Posterior& posterior, const CheckedFitConfig& config,
                         const CheckedFitProgress& progress) {
  return fit_and_check(posterior, config, progress, nullptr);
}

CheckedFit fit_and_check(const Posterior& posterior, const CheckedFitConfig& config, const CheckedFitProgress& progress,
                         const SharedPosterior* shared) {
  if (config.draws < 100) throw InputError("the number of draws must be at least 100");
  return CheckedFitter(posterior, config, progress, shared).run();
}

}  // namespace hone
