#include "hone/fit/super_starts.hpp"

#include <algorithm>
#include <functional>

#include "hone/base/scalar.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

// The ELBO of q over z, from a few draws.
double elbo_of(const Target& target, const FittedQ& q, std::uint64_t seed) {
  constexpr int draws = 200;
  const WhitenedTarget whitened(target, q.whitening);
  const Matrix<double> e = independent_draws(*q.family, draws, PhiloxSource(seed));
  std::vector<double> log_p(draws), log_q(draws);
  whitened.evaluate(e, Want::value, log_p, {});
  q.family->log_density(e, Want::value, log_q, {});
  Moments f;
  for (int i = 0; i < draws; ++i)
    if (log_p[i] != -infinity) f.add(log_p[i] - log_q[i] + q.whitening.log_det());
  return f.mean();
}

// A point over e at which log p is finite: the first such proposal of twenty, or else the last resort.
void place(const Target& target, const Whitening& whitening,
           const std::function<void(std::uint32_t, std::span<double>)>& propose, std::span<const double> last_resort,
           std::span<double> e) {
  const int d = target.dimension();
  std::vector<double> z(d), gradient(d);
  double value = -infinity;
  for (std::uint32_t attempt = 0; attempt < 20 && value == -infinity; ++attempt) {
    propose(attempt, e);
    whitening.to_z(e, z);
    target.evaluate({z.data(), d, 1}, Want::both, {&value, 1}, {gradient.data(), d, 1});
  }
  if (value == -infinity) whitening.to_e(last_resort, e);
}

}  // namespace

SuperStarts super_starts(const Target& target, const PosteriorFit& fit, const StartSeeds& seeds, int& left_out) {
  const int d = target.dimension();
  // One component per mode. A family of the caller's own knows nothing of the modes, whatever its components.
  const bool mixture = fit.q.kind == QKind::mixture && fit.modes > 1;
  const double least = elbo_of(target, fit.q, seeds.elbo) - negligible_mass;
  std::vector<std::vector<std::size_t>> own(mixture ? fit.modes : 1);
  for (std::size_t k = 0; k < fit.starts.size(); ++k) {
    const bool counts = fit.mode_of_start[k] >= 0 && (mixture || fit.starts[k].elbo >= least);
    if (counts) own[mixture ? fit.mode_of_start[k] : 0].push_back(k);
    left_out += !counts;
  }
  const int each = std::max(2, (8 + static_cast<int>(own.size()) - 1) / static_cast<int>(own.size()));
  SuperStarts result{Matrix<double>(d, each * static_cast<int>(own.size())), {}};
  const PhiloxSource random(seeds.starts);
  const Matrix<double> wide = independent_draws(*fit.q.family, 20 * result.z.cols(), random);
  std::vector<double> noise(d), z(d);
  for (std::size_t mode = 0; mode < own.size(); ++mode)
    for (std::size_t i = 0; i < static_cast<std::size_t>(each); ++i) {
      const int column = static_cast<int>(result.mode.size());
      result.mode.push_back(static_cast<int>(mode));
      const bool from_q = !mixture && i >= own[mode].size();
      const LocalNormal& local = from_q ? fit.starts.front() : fit.starts[own[mode][i % own[mode].size()]];
      const auto propose = [&](std::uint32_t attempt, std::span<double> e) {
        if (from_q) {
          copy(wide.column(20 * column + static_cast<int>(attempt)), e);
          for (double& x : e) x *= 1.5;
          return;
        }
        random.normals({Purpose::start, attempt, static_cast<std::uint32_t>(column)}, noise);
        local.whitening.to_z(noise, z);
        fit.q.whitening.to_e(z, e);
      };
      place(target, fit.q.whitening, propose, local.end, result.z.column(column));
    }
  return result;
}

}  // namespace hone
