#include "hone/fit/q_geometry.hpp"

#include <algorithm>
#include <cmath>

#include "hone/base/scalar.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/tensor/triangular.hpp"

namespace hone {
namespace {

// R⁻¹ S for packed lower triangular R and S
std::vector<double> divide_lower(std::span<const double> r, std::span<const double> s, int d) {
  std::vector<double> result(s.size()), column(d);
  for (int j = 0; j < d; ++j) {
    for (int i = 0; i < d; ++i) column[i] = i < j ? 0 : s[packed(i, j)];
    solve_lower(r, column, column);
    for (int i = j; i < d; ++i) result[packed(i, j)] = column[i];
  }
  return result;
}

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

double symmetrised_kl(MixtureFamily& now, std::span<const double> before, const RandomSource& random) {
  constexpr int draws_each = 400;
  MixtureFamily old = now;
  copy(before, old.parameters());
  double sum = 0;
  for (const auto& [from, to] : {std::pair{&now, &old}, std::pair{&old, &now}}) {
    Draws draws(from->dimension(), from->components(), draws_each);
    from->draw(random, assessment_iteration, draws);
    std::vector<double> here(draws.count()), there(draws.count());
    from->log_density(draws.z, Want::value, here, {});
    to->log_density(draws.z, Want::value, there, {});
    for (int i = 0; i < draws.count(); ++i) sum += draws.weight[i] * (here[i] - there[i]);
  }
  return std::max(0.0, sum);
}

void measure_motion(const FittedQ& q, const Whitening& after, QMotion& motion) {
  const int d = q.whitening.dimension();
  motion.growth = motion.shift = 0;
  motion.coordinate = 0;
  double most = -1;
  for (int i = 0; i < d; ++i) {
    const double sd = std::sqrt(q.whitening.variance(i));
    const double growth = 0.5 * std::log(after.variance(i)) - std::log(sd);
    const double shift = std::abs(after.mean()[i] - q.whitening.mean()[i]) / sd;
    motion.growth = std::max(motion.growth, growth);
    motion.shift = std::max(motion.shift, shift);
    if (growth + shift <= most) continue;
    most = growth + shift;
    motion.coordinate = i;
  }
}

// The mean of the mixture and the Cholesky factor of the covariance within its components.
void within(const MixtureFamily& q, std::vector<double>& mean, std::vector<double>& lower) {
  const int d = q.dimension();
  Matrix<double> covariance(d, d);
  std::vector<double> weight(q.components());
  q.log_weights(weight);
  mean.assign(d, 0.0);
  for (int k = 0; k < q.components(); ++k) {
    const Normal component = q.normal(k);
    const double w = std::exp(weight[k]);
    for (int i = 0; i < d; ++i) {
      mean[i] += w * component.mean[i];
      for (int j = 0; j <= i; ++j)
        for (int l = 0; l <= j; ++l)
          covariance(i, j) += w * component.scale[packed(i, l)] * component.scale[packed(j, l)];
    }
  }
  lower = cholesky(covariance);
}

void rewhiten_mixture(FittedQ& q, MixtureFamily& family, Whitening& after) {
  std::vector<double> mean, lower;
  within(family, mean, lower);
  after = q.whitening.then_lower(mean, lower);
  for (int k = 0; k < family.components(); ++k) {
    const std::span<double> centre = family.mean(k), scale = family.scale(k);
    for (std::size_t i = 0; i < centre.size(); ++i) centre[i] -= mean[i];
    solve_lower(lower, centre, centre);
    copy(divide_lower(lower, scale, family.dimension()), scale);
  }
}

}  // namespace

std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t part) {
  const auto word = philox({static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(part >> 32), 0x5eed, 0}, seed);
  return static_cast<std::uint64_t>(word[0]) << 32 | word[1];
}

void start_q(std::span<const LocalNormal> modes, FittedQ& q) {
  const LocalNormal& best = modes.front();
  const int d = best.whitening.dimension();
  q.whitening = best.whitening;
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
    copy(divide_lower(root, mode.packed_lower(), d), mixture->scale(k));
    mixture->logits()[k] = modes[k].elbo - best.elbo;
  }
  q.family = std::move(mixture);
}

QMotion rewhiten(FittedQ& q, std::span<const double> before, const RandomSource& random) {
  QMotion motion{};
  Whitening after = q.whitening;
  if (auto* mixture = dynamic_cast<MixtureFamily*>(q.family.get())) {
    motion.change = symmetrised_kl(*mixture, before, random);
    rewhiten_mixture(q, *mixture, after);
  } else {
    auto& gaussian = dynamic_cast<GaussianFamily&>(*q.family);
    motion.change = symmetrised_kl(gaussian.normal());  // `before` is the standard normal
    after = gaussian.covariance() == Covariance::full ? q.whitening.then_lower(gaussian.mean(), gaussian.scale())
                                                      : q.whitening.then_diagonal(gaussian.mean(), gaussian.scale());
    std::ranges::fill(gaussian.mean(), 0.0);
    set_isotropic(gaussian.covariance(), 1, gaussian.scale());
  }
  measure_motion(q, after, motion);
  q.whitening = std::move(after);
  return motion;
}

}  // namespace hone
