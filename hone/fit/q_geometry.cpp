#include "hone/fit/q_geometry.hpp"

#include <algorithm>
#include <cmath>

#include "hone/assess/importance.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// KL(N(0, I) ‖ q) + KL(q ‖ N(0, I)) for q = N(μ, L Lᵀ): the determinants cancel
double symmetrised_kl(const Normal& q) {
  const int d = static_cast<int>(q.mean.size());
  std::vector<double> column(d), mean(q.mean.begin(), q.mean.end()), zero(d);
  double sum = -2.0 * d;
  for (const double x : mean) sum += square(x);
  for (int i = 0; i < d; ++i) sum += q.variance(i);  // tr Σ
  const Normal centred{q.covariance, zero, q.scale};
  centred.whiten(mean, column);
  for (const double x : column) sum += square(x);  // μᵀ Σ⁻¹ μ
  for (int j = 0; j < d; ++j) {                    // tr Σ⁻¹ = ‖L⁻¹‖²
    std::fill(mean.begin(), mean.end(), 0.0);
    mean[j] = 1;
    centred.whiten(mean, column);
    for (const double x : column) sum += square(x);
  }
  return 0.5 * sum;
}

bool is_standard(const Normal& q) {
  std::vector<double> identity(q.scale.size());
  set_isotropic(q.covariance, 1, identity);
  return std::ranges::all_of(q.mean, [](double x) { return x == 0; }) && std::ranges::equal(q.scale, identity);
}

// By draws of both sides.
double sampled_change(Family& q, std::span<const double> before, std::span<const double> now,
                      const RandomSource& random) {
  constexpr int draws_each = 400;
  double sum = 0;
  for (const auto& [from, to] : {std::pair{now, before}, std::pair{before, now}}) {
    Draws draws(q.dimension(), q.components(), draws_each);
    std::vector<double> here(draws.count()), there(draws.count());
    copy(from, q.parameters());
    q.draw(random, assessment_iteration, draws);
    q.log_density(draws.z, Want::value, here, {});
    copy(to, q.parameters());
    q.log_density(draws.z, Want::value, there, {});
    for (int i = 0; i < draws.count(); ++i) sum += draws.weight[i] * (here[i] - there[i]);
  }
  return std::max(0.0, sum);
}

// Symmetrised KL between q and the q of parameters `before`: exact where that is the standard normal, and q a Gaussian.
double change_since(Family& q, std::span<const double> before, const RandomSource& random) {
  const std::vector<double> now(q.parameters().begin(), q.parameters().end());
  if (q.has_analytic_entropy() && q.component(0)) {
    copy(before, q.parameters());
    const bool standard = is_standard(*q.component(0));
    copy(now, q.parameters());
    if (standard) return symmetrised_kl(*q.component(0));
  }
  const double change = sampled_change(q, before, now, random);
  copy(now, q.parameters());
  return change;
}

// Growth and shift of every coordinate, measured by the old sd.
template <class Growth, class Shift>
void find_largest(int dimension, Growth&& growth_of, Shift&& shift_of, QMotion& motion) {
  double most = -1;
  for (int i = 0; i < dimension; ++i) {
    const double growth = growth_of(i), shift = shift_of(i);
    motion.growth = std::max(motion.growth, growth);
    motion.shift = std::max(motion.shift, shift);
    if (growth + shift <= most) continue;
    most = growth + shift;
    motion.coordinate = i;
  }
}

void measure_motion(const Whitening& before, const Whitening& after, QMotion& motion) {
  const std::vector<double> old = before.variances(), now = after.variances();
  find_largest(
      before.dimension(), [&](int i) { return 0.5 * std::log(now[i] / old[i]); },
      [&](int i) { return std::abs(after.mean()[i] - before.mean()[i]) / std::sqrt(old[i]); }, motion);
}

// Of a q that keeps its coordinates, by its moments over e.
void measure_motion(Family& q, std::span<const double> before, QMotion& motion) {
  const int d = q.dimension();
  std::vector<double> mean(d), sd(d), old_mean(d), old_sd(d);
  const std::vector<double> now(q.parameters().begin(), q.parameters().end());
  q.moments(mean, sd);
  copy(before, q.parameters());
  q.moments(old_mean, old_sd);
  copy(now, q.parameters());
  find_largest(
      d, [&](int i) { return std::log(sd[i] / old_sd[i]); },
      [&](int i) { return std::abs(mean[i] - old_mean[i]) / old_sd[i]; }, motion);
}

}  // namespace

std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t part) {
  const auto word = philox({static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(part >> 32), 0x5eed, 0}, seed);
  return static_cast<std::uint64_t>(word[0]) << 32 | word[1];
}

void start_q(std::span<const LocalNormal> modes, const FamilyMaker& own, FittedQ& q) {
  const LocalNormal& best = modes.front();
  const int d = best.whitening.dimension();
  q.whitening = best.whitening;
  if (own) {
    q.family = own(d);
    if (!q.family || q.family->dimension() != d)
      throw InputError("own_family must make a family of the posterior's dimension, " + std::to_string(d));
    return;
  }
  if (q.kind != QKind::mixture) {
    q.family =
        std::make_unique<GaussianFamily>(d, q.kind == QKind::gaussian_full ? Covariance::full : Covariance::diagonal);
    return;
  }
  auto mixture = std::make_unique<MixtureFamily>(d, static_cast<int>(modes.size()), Covariance::full);
  const std::vector<double> root = q.whitening.packed_lower();
  for (int k = 0; k < mixture->components(); ++k) {
    const Whitening& mode = modes[k].whitening;
    q.whitening.to_e(mode.mean(), mixture->mean(k));
    copy(divide_lower(root, mode.packed_lower()), mixture->scale(k));
    mixture->logits()[k] = modes[k].elbo - best.elbo;
  }
  q.family = std::move(mixture);
}

QMotion rewhiten(FittedQ& q, std::span<const double> before, const RandomSource& random) {
  QMotion motion{};
  Family& family = *q.family;
  motion.change = change_since(family, before, random);
  const std::optional<LocationScale> own = family.standardize();
  if (!own) {
    measure_motion(family, before, motion);
    return motion;
  }
  if (own->covariance == Covariance::full && !q.whitening.is_dense())
    throw InputError("in more than " + std::to_string(most_dense_dimensions) +
                     " dimensions a family can give up a diagonal scale alone");
  Whitening after = own->covariance == Covariance::full ? q.whitening.then_lower(own->mean, own->scale)
                                                        : q.whitening.then_diagonal(own->mean, own->scale);
  measure_motion(q.whitening, after, motion);
  q.whitening = std::move(after);
  return motion;
}

void set_mode_weights(const Target& target, std::uint64_t seed, FittedQ& q) {
  Family& mixture = *q.family;
  const WhitenedTarget whitened(target, q.whitening);
  const PhiloxSource random(seed);
  constexpr int draws = 2000;
  std::vector<int> component;
  const Matrix<double> z = independent_draws(mixture, draws, random, &component);
  std::vector<double> log_p(draws), log_q(draws);
  whitened.evaluate(z, Want::value, log_p, {});
  mixture.log_density(z, Want::value, log_q, {});
  for (int i = 0; i < draws; ++i) log_p[i] -= log_q[i];
  ModeMasses masses = mode_masses(smooth_weights(log_p), component, mixture.components());
  if (!(masses.k_hat < usable_k_hat)) return;
  for (double& m : masses.mass) m = std::log(m + 1e-6);
  mixture.set_log_weights(masses.mass);
}

}  // namespace hone
