#include "hone/fit/posterior_fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "hone/base/error.hpp"
#include "hone/base/given.hpp"
#include "hone/base/scalar.hpp"
#include "hone/fit/fit.hpp"
#include "hone/fit/local_normal.hpp"
#include "hone/fit/q_geometry.hpp"
#include "hone/fit/shared_fit.hpp"
#include "hone/fit/shared_searches.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/objective/kl.hpp"
#include "hone/target/whitened.hpp"

namespace hone {
namespace {

constexpr double settled = 0.005;     // a stage that changes q by less than this per dimension is the last one,
constexpr double still_moves = 0.25;  // unless one coordinate's mean moves by more than this, in sds, or its log sd

// How stages of an objective grow: iterations double from `first`, at most `count` stages.
struct Schedule {
  std::uint32_t first;
  int count;
  double rate;       // of the first stage, in one dimension; falls with 1/√D and with the stages
  double most_rate;  // and, where the gradient is noisy, with 1/D: at most this over D
};
constexpr Schedule objective_schedule{.first = 64, .count = 4, .rate = 0.1, .most_rate = 0.4};

Shape shape_of(QKind kind) {
  if (kind == QKind::gaussian) return Shape::diagonal;
  return kind == QKind::gaussian_low_rank ? Shape::low_rank : Shape::dense;
}

void check(const Target& target, const PosteriorFitConfig& config) {
  if (target.dimension() < 1) throw InputError("the posterior has no parameters: there is nothing to fit");
  given(config.kernel, "kernel");
  if (config.own_family ? config.family != QKind::automatic : config.family == QKind::own)
    throw InputError("a family of your own needs own_family, with family left automatic");
  if (config.draws_per_iteration < 2) throw InputError("a fit needs at least 2 draws per iteration");
  if (config.init.cols() > 0 && config.init.rows() != target.dimension())
    throw InputError("init: points of " + std::to_string(config.init.rows()) + " coordinates, expected " +
                     std::to_string(target.dimension()));
  if (config.init.cols() > config.starts)
    throw InputError("init: " + std::to_string(config.init.cols()) + " points are more than the " +
                     std::to_string(config.starts) + " starts");
  if (config.threads < 1) throw InputError("the number of threads must be at least 1");
  const bool full = config.family == QKind::gaussian_full || config.family == QKind::gaussian_curvature ||
                    config.family == QKind::mixture;
  if (full && target.dimension() > 10 * most_full_dimensions)
    throw InputError("a full covariance in " + std::to_string(target.dimension()) +
                     " dimensions is too large; use independent coordinates or the automatic choice");
}

class PosteriorFitter {
 public:
  PosteriorFitter(const Target& target, const PosteriorFitConfig& config, const FitObserver& observe,
                  const SharedPosterior* shared)
      : target_(target, config.budget.stop), config_(config), observe_(observe), shared_(shared) {}

  PosteriorFit run() {
    begin();
    bool settled_down =
        run_stages(by_kl_, {.first = 64, .count = config_.kl_stages, .rate = 0.2, .most_rate = infinity});
    if (config_.objective) settled_down = run_stages(config_.objective, objective_schedule);
    result_.converged = settled_down;
    result_.gradients = target_.count();
    return std::move(result_);
  }

 private:
  void begin();
  std::vector<LocalNormal> best_of_modes() const;
  void choose_modes();
  std::vector<LocalNormal> search(const StartConfig& config);
  void look_for_modes(Shape shape);
  Shells shells() const;
  void search_surplus(Shape shape);
  bool starts_are_few() const;
  bool separated(const LocalNormal& a, const LocalNormal& b) const;
  bool run_stages(const std::shared_ptr<const Objective>& objective, const Schedule& schedule);
  void run_stage(const std::shared_ptr<const Objective>& objective, Stage& stage, double rate);
  double first_step_size(const Target& whitened);
  void check_runaway(const QMotion& motion);

  // Whether this part of the budget is spent.
  bool spent(double part = 1) const {
    const Budget& budget = config_.budget;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun_;
    return (budget.stop && *budget.stop) ||
           (budget.gradients > 0 &&
            static_cast<double>(target_.count()) >= part * static_cast<double>(budget.gradients)) ||
           (budget.seconds > 0 && passed.count() >= part * budget.seconds);
  }
  void report(const Stage* stage) {
    result_.gradients = target_.count();
    observe_(result_, stage);
  }

  CountedTarget target_;
  const PosteriorFitConfig& config_;
  // The path's gradient of f alone: no noise where q = p.
  std::shared_ptr<const Objective> by_kl_ = std::make_shared<Kl>(KlConfig{.entropy = Entropy::sampled});
  const FitObserver& observe_;
  const SharedPosterior* shared_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  PosteriorFit result_;
  std::uint64_t stage_index_ = 0;
  int runaway_stages_ = 0;
  double motion_ = 0;  // largest of a coordinate in the last stage
};

void PosteriorFitter::begin() {
  QKind& kind = result_.q.kind;
  const int d = target_.dimension();
  kind = config_.family;
  if (kind == QKind::automatic)
    kind = d <= most_full_dimensions    ? QKind::gaussian_full
           : d <= most_dense_dimensions ? QKind::gaussian_curvature
                                        : QKind::gaussian_low_rank;
  const PhiloxSource random(derived_seed(config_.seed, 0));
  result_.starts = search({.starts = config_.starts, .shape = shape_of(kind), .init = config_.init});
  choose_modes();
  if (observe_) {
    start_q(best_of_modes(), {}, result_.q);
    report(nullptr);
  }
  std::vector<LocalNormal> best;
  target_.heed(true);
  try {
    if (d <= most_full_dimensions && config_.init.cols() == 0) look_for_modes(shape_of(kind));
    best = best_of_modes();
    Team team(shared_ ? 1 : config_.threads);  // ranks share each batch
    for (LocalNormal& local : best) sharpen(target_, random, local, team);
  } catch (const Stopped&) {  // go on with the starts whose modes are known
    result_.starts.erase(result_.starts.begin() + std::ssize(result_.mode_of_start), result_.starts.end());
    if (best.empty()) best = best_of_modes();
  }
  target_.heed(false);
  const auto better = [](const LocalNormal& a, const LocalNormal& b) { return a.elbo > b.elbo; };
  std::ranges::stable_sort(best, better);
  if (config_.own_family)
    kind = QKind::own;
  else if (config_.family == QKind::automatic && kind == QKind::gaussian_full && result_.modes > 1)
    kind = QKind::mixture;
  start_q(best, config_.own_family, result_.q);
}

// The start with the best approximation of every mode.
std::vector<LocalNormal> PosteriorFitter::best_of_modes() const {
  std::vector<LocalNormal> best;
  for (int mode = 0; mode < result_.modes; ++mode) {
    const LocalNormal* top = nullptr;
    for (std::size_t k = 0; k < result_.starts.size(); ++k)
      if (result_.mode_of_start[k] == mode && (!top || top->elbo < result_.starts[k].elbo)) top = &result_.starts[k];
    best.push_back(*top);
  }
  return best;
}

std::vector<LocalNormal> PosteriorFitter::search(const StartConfig& config) {
  const std::uint64_t seed = derived_seed(config_.seed, 0);
  if (shared_) return find_local_normals(target_, config, seed, *shared_);
  Team team(config_.threads);
  return find_local_normals(target_, config, PhiloxSource(seed), team);
}

// Whether log p dips on the straight line between two modes.
bool PosteriorFitter::separated(const LocalNormal& a, const LocalNormal& b) const {
  constexpr int points = 16;
  constexpr double least_dip = 3;
  if (!a.converged || !b.converged) return false;
  Matrix<double> z(target_.dimension(), points);
  for (int k = 0; k < points; ++k)
    for (int i = 0; i < z.rows(); ++i) z(i, k) = a.end[i] + (b.end[i] - a.end[i]) * (k + 0.5) / points;
  std::vector<double> value(points);
  target_.evaluate(z, Want::value, value, {});
  return *std::ranges::min_element(value) < std::min(a.value, b.value) - least_dip;
}

// Which starts ended at one mode. If an evaluation throws, the modes stay as they were.
void PosteriorFitter::choose_modes() {
  const auto& starts = result_.starts;
  std::vector<std::size_t> order(starts.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return starts[a].elbo > starts[b].elbo; });
  std::vector<int> mode_of_start(starts.size(), -1);
  std::vector<std::size_t> representative;
  for (const std::size_t k : order) {
    if (starts[k].elbo < starts[order.front()].elbo - negligible_mass) break;
    for (std::size_t mode = 0; mode < representative.size() && mode_of_start[k] < 0; ++mode)
      if (!separated(starts[representative[mode]], starts[k])) mode_of_start[k] = static_cast<int>(mode);
    if (mode_of_start[k] >= 0) continue;
    mode_of_start[k] = static_cast<int>(representative.size());
    representative.push_back(k);
  }
  result_.mode_of_start = std::move(mode_of_start);
  result_.modes = static_cast<int>(representative.size());
}

// More searches. First from points around the best approximation where it misses much density, and from as many draws
// of a Gaussian three times as wide. Then from both kinds of starts again, as long as starts are few for the modes that
// were found: if one of several modes was reached only once, others are likely to be missing.
void PosteriorFitter::look_for_modes(Shape shape) {
  const int most = 8 * config_.starts;
  search_surplus(shape);
  auto first = static_cast<std::uint32_t>(config_.starts);
  for (bool wide = true; wide || first < static_cast<std::uint32_t>(most); wide = !wide) {
    if (spent(0.25) || (first > static_cast<std::uint32_t>(config_.starts) && !starts_are_few())) return;
    const auto best = std::ranges::max_element(result_.starts, {}, &LocalNormal::elbo);
    const Whitening about = best->whitening;
    std::vector<LocalNormal> more =
        search({.starts = config_.starts, .first = first, .shape = shape, .about = wide ? &about : nullptr});
    std::ranges::move(more, std::back_inserter(result_.starts));
    choose_modes();
    first += static_cast<std::uint32_t>(config_.starts);
  }
}

// At most a sixteenth of what the fit may spend goes into values of log p in the shells.
Shells PosteriorFitter::shells() const {
  constexpr double share = 1.0 / 16;
  double values = std::clamp(20'000 / target_.dimension(), 512, 4096);
  const Budget& budget = config_.budget;
  if (budget.gradients > 0) values = std::min(values, share * static_cast<double>(budget.gradients));
  if (budget.seconds > 0) {  // at the pace so far
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun_;
    values = std::min(values, share * budget.seconds * static_cast<double>(target_.count()) / passed.count());
  }
  Shells shells;
  shells.values = std::max(1, static_cast<int>(values) / shells.count);
  return shells;
}

void PosteriorFitter::search_surplus(Shape shape) {
  if (spent(0.25)) return;
  constexpr std::uint32_t first = 1u << 16;  // their own random numbers, beside those of other searches
  const auto best = std::ranges::max_element(result_.starts, {}, &LocalNormal::elbo);
  Team team(shared_ ? 1 : config_.threads);  // ranks share each batch of values
  const Matrix<double> points =
      surplus_points(target_, best->whitening, best->elbo, shells(), PhiloxSource(derived_seed(config_.seed, 0)), team);
  if (points.cols() == 0) return;
  std::vector<LocalNormal> more = search({.starts = points.cols(), .first = first, .shape = shape, .at = points});
  std::ranges::move(more, std::back_inserter(result_.starts));
  choose_modes();
}

bool PosteriorFitter::starts_are_few() const {
  constexpr int per_mode = 8;
  if (result_.modes == 1) return false;
  for (int mode = 0; mode < result_.modes; ++mode)
    if (std::ranges::count(result_.mode_of_start, mode) == 1) return true;
  return static_cast<int>(result_.starts.size()) < per_mode * result_.modes;
}

bool PosteriorFitter::run_stages(const std::shared_ptr<const Objective>& objective, const Schedule& schedule) {
  std::uint32_t iterations = schedule.first;
  for (int i = 0; i < schedule.count && !spent(); ++i, iterations *= 2) {
    Stage stage{objective->name(), iterations, 0};
    const double d = target_.dimension();
    run_stage(objective, stage, std::min(schedule.rate / std::sqrt(d), schedule.most_rate / d) / std::sqrt(i + 1.0));
    result_.stages.push_back(stage);
    if (observe_) report(&result_.stages.back());
    if (stage.skipped == 0 && stage.change < settled * d && motion_ < still_moves && i > 0) return true;
  }
  return false;
}

double PosteriorFitter::first_step_size(const Target& whitened) {
  const PhiloxSource random(derived_seed(config_.seed, 1000 + stage_index_));
  const Family& q = *result_.q.family;
  Draws draws(q.dimension(), q.components(), 32);
  q.draw(random, assessment_iteration, draws);
  Chains chains(q.dimension(), draws.count());
  chains.z = draws.z;
  whitened.evaluate(chains.z, Want::both, chains.value, chains.gradient);
  Team team(config_.threads);
  return find_step_size(whitened, *config_.kernel, chains, 0.5, config_.acceptance, random, team);
}

void PosteriorFitter::run_stage(const std::shared_ptr<const Objective>& objective, Stage& stage, double rate) {
  const PhiloxSource random(derived_seed(config_.seed, ++stage_index_));
  const WhitenedTarget whitened(target_, result_.q.whitening);
  FitConfig fit_config;
  fit_config.objective = objective;
  fit_config.kernel = config_.kernel;
  fit_config.refine = {.steps = config_.steps,
                       .adapt = Adapt::between,
                       .step_size = objective->refines() ? first_step_size(whitened) : 1,
                       .acceptance = config_.acceptance,
                       .gain = 0.02};
  fit_config.optimizer = {.kind = OptimizerKind::adam,
                          .rate_location = rate,
                          .rate_scale = rate,
                          .rate_weight = 0.1 * rate,
                          .decay = 1,
                          .decay_every = 0,
                          .positive = PositiveSteps::logarithmic};
  fit_config.draws_per_iteration = config_.draws_per_iteration;
  fit_config.threads = config_.threads;
  fit_config.least_acceptance = config_.least_acceptance;
  fit_config.most_dropped = 0.25;

  Family& family = *result_.q.family;
  const std::vector<double> before(family.parameters().begin(), family.parameters().end());
  std::vector<double> average(before.size());
  std::uint32_t averaged = 0;
  Fit fit(whitened, family, fit_config, random);
  for (std::uint32_t i = 1; i <= stage.iterations && !spent(); ++i) {
    stage.acceptance += fit.step().acceptance;
    if (2 * i <= stage.iterations) continue;
    ++averaged;
    for (std::size_t k = 0; k < average.size(); ++k) average[k] += family.parameters()[k];
  }
  stage.iterations = fit.iteration();
  stage.acceptance /= std::max(1u, stage.iterations);
  stage.step_size = fit.step_size();
  stage.skipped = fit.skipped_steps();
  stage.gradients = target_.count();
  result_.dropped_draws += fit.dropped_draws();
  result_.rejected_nonfinite += fit.rejected_nonfinite();
  for (std::size_t k = 0; k < average.size() && averaged > 0; ++k) family.parameters()[k] = average[k] / averaged;
  const QMotion motion = rewhiten(result_.q, before, random);
  stage.change = motion.change;
  motion_ = std::max(motion.shift, std::abs(motion.growth));
  check_runaway(motion);
}

void PosteriorFitter::check_runaway(const QMotion& motion) {
  const bool away = motion.growth > 1.5 || motion.shift > 4;
  runaway_stages_ = away ? runaway_stages_ + 1 : 0;
  if (runaway_stages_ < 4) return;
  throw RunsAway(motion.coordinate);
}

}  // namespace

RunsAway::RunsAway(int along, const std::string& name)
    : InputError("q runs away without end, most along unconstrained coordinate " +
                 (name.empty() ? std::to_string(along + 1) : "'" + name + "'") +
                 ": the posterior seems improper (no finite mass); give its parameters proper priors or limits"),
      coordinate(along) {}

PosteriorFit fit_posterior(const Target& target, const PosteriorFitConfig& config, const FitObserver& observe) {
  return fit_posterior(target, config, observe, nullptr);
}

PosteriorFit fit_posterior(const Target& target, const PosteriorFitConfig& config, const FitObserver& observe,
                           const SharedPosterior* shared) {
  check(target, config);
  return PosteriorFitter(target, config, observe, shared).run();
}

}  // namespace hone
