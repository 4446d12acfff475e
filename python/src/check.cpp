// A second opinion on draws that somebody else made: each is refined, and the refined draws are compared with them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <stdexcept>

#include "app/run/posterior_run.hpp"
#include "hone/assess/importance.hpp"
#include "hone/assess/q_checks.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/triangular.hpp"
#include "hone/tensor/vectors.hpp"
#include "python/src/fit.hpp"

namespace hone::python {
namespace {

// The law of the given draws, as far as it is known: the draws themselves, and a standard normal in place of a density.
// Only what does not need the density is reported.
class DrawnFamily final : public Family {
 public:
  explicit DrawnFamily(MatrixView<const double> draws)
      : Family(draws.rows()), draws_(draws), normal_(draws.rows(), Covariance::diagonal) {}

  void draw(const RandomSource&, std::uint32_t, Draws& out, std::uint32_t first) const override {
    for (int c = 0; c < out.count(); ++c)
      copy(draws_.column((static_cast<int>(first) + c) % draws_.cols()), out.z.column(c));
    std::ranges::fill(out.weight, 1.0 / out.count());
  }
  void log_density(MatrixView<const double> z, Want want, std::span<double> value,
                   MatrixView<double> gradient) const override {
    normal_.log_density(z, want, value, gradient);
  }
  void moments(std::span<double> mean, std::span<double> sd) const override { normal_.moments(mean, sd); }
  void add_pathwise(const Draws&, MatrixView<const double>, std::span<const double>, std::span<double>) const override {
    throw std::logic_error("draws without a density have no gradients");
  }
  void add_score(MatrixView<const double>, std::span<const double>, std::span<double>) const override {
    throw std::logic_error("draws without a density have no gradients");
  }

 private:
  MatrixView<const double> draws_;
  GaussianFamily normal_;
};

// Coordinates in which the draws have mean 0 and covariance 1, as far as their number shows it.
Whitening whitening_of(MatrixView<const double> z) {
  const int d = z.rows(), n = z.cols();
  std::vector<double> mean(d), sd(d);
  for (int k = 0; k < d; ++k) {
    Moments m;
    for (int i = 0; i < n; ++i) m.add(z(k, i));
    mean[k] = m.mean();
    sd[k] = m.sd();
    if (!(sd[k] > 0)) throw InputError("draws: coordinate " + std::to_string(k + 1) + " is the same in all draws");
  }
  if (d > most_full_dimensions || n < 5 * d) return Whitening::diagonal(mean, sd);
  Matrix<double> covariance(d, d);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < d; ++j)
      for (int k = 0; k < d; ++k) covariance(k, j) += (z(k, i) - mean[k]) * (z(j, i) - mean[j]) / (n - 1);
  return Whitening::dense(mean, cholesky(covariance));
}

// Eight draws, half as far out again; a draw itself where there is no density.
SuperStarts starts_of(const Target& target, MatrixView<const double> e) {
  constexpr int count = 8;
  const int d = e.rows();
  SuperStarts starts{Matrix<double>(d, count), std::vector<int>(count, 0)};
  std::vector<double> gradient(d);
  for (int c = 0; c < count; ++c) {
    const auto own = e.column(static_cast<int>((static_cast<std::int64_t>(c) * e.cols()) / count));
    for (int k = 0; k < d; ++k) starts.z(k, c) = 1.5 * own[k];
    double value = 0;
    target.evaluate({starts.z.column(c).data(), d, 1}, Want::both, {&value, 1}, {gradient.data(), d, 1});
    if (value == -infinity) copy(own, starts.z.column(c));
  }
  return starts;
}

struct Compared {
  Findings findings;
  RefinedDraws refined;
  Matrix<double> z;  // the refined draws over z
  std::int64_t gradients = 0;
};

Compared compare(const Posterior& posterior, MatrixView<const double> z, const CheckedFitConfig& config, Watch& watch) {
  const Whitening whitening = whitening_of(z);
  const CountedTarget counted(posterior);
  const WhitenedTarget target(counted, whitening);
  Matrix<double> e(z.rows(), z.cols());
  for (int i = 0; i < z.cols(); ++i) whitening.to_e(z.column(i), e.column(i));
  const DrawnFamily family(e);
  RefinedConfig refine;
  refine.q_draws = refine.pairs = z.cols();
  refine.steps = config.fit.steps;
  refine.gradients = config.fit.budget.gradients;
  refine.stop = config.fit.budget.stop;
  refine.seed = config.fit.seed;
  refine.threads = config.fit.threads;
  Compared result;
  result.refined = refine_draws(target, family, starts_of(target, e), refine, [&](int steps, double) {
    watch.say("refining, " + std::to_string(steps) + " steps", counted.count());
  });
  const RefinedDraws& r = result.refined;
  const std::vector<double> ratio(r.log_p0.size());
  Findings& f = result.findings;
  f.dimension = z.rows();
  f.starts = 8;
  f.coordinate_names = f.chain_names = posterior.coordinate_names();
  f.chains = r.checks;
  f.capped = r.capped;
  f.steps = r.steps;
  f.q = check_q(r, family, whitening, smooth_weights(ratio), config.fit.seed, config.fit.threads);
  result.z = Matrix<double>(z.rows(), r.zt.cols());
  for (int i = 0; i < r.zt.cols(); ++i) whitening.to_z(r.zt.column(i), result.z.column(i));
  result.gradients = counted.count();
  return result;
}

}  // namespace

nb::dict check_draws(const ModelParts& parts, const SettingTexts& settings, const Points& draws, Stop& stop,
                     nb::object tell) {
  PosteriorRunConfig config;
  Settings table = posterior_run_settings(config);
  apply(table, settings);
  resolve(config);
  config.check.fit.budget.stop = &stop.set;
  Watch watch(std::move(tell));
  Compared compared;
  std::unique_ptr<Posterior> posterior;
  {
    const nb::gil_scoped_release released;
    posterior = open(parts, compiling(watch, stop));
    if (static_cast<int>(draws.shape(1)) != posterior->dimension())
      throw InputError("draws: " + std::to_string(draws.shape(1)) + " coordinates, expected the " +
                       std::to_string(posterior->dimension()) + " unconstrained ones of the model");
    const WatchedPosterior watched(*posterior, watch);
    compared = compare(watched, view_of(draws), config.check, watch);
  }
  nb::dict result = dict_of(judge(compared.findings, config.check.tolerances));
  result["shift"] = array_of(compared.findings.q.shift);
  result["sd_ratio"] = array_of(compared.findings.q.sd_ratio);
  result["p_value"] = compared.findings.q.p_value;
  result["nested_rhat"] = compared.findings.chains.nested_rhat;
  result["steps"] = compared.findings.steps;
  result["outside_support"] = compared.refined.dropped_draws;
  result["gradients"] = compared.gradients;
  result["coordinates"] = posterior->coordinate_names();
  result["refined"] = array_of(std::move(compared.z));
  return result;
}

}  // namespace hone::python
