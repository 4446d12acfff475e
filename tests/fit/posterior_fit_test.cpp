#include "hone/fit/posterior_fit.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "hone/assess/divergence.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/fit/checked_fit.hpp"
#include "hone/fit/fit.hpp"
#include "hone/fit/q_geometry.hpp"
#include "hone/target/density.hpp"
#include "hone/target/whitened.hpp"
#include "hone/tensor/vectors.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/methods.hpp"

namespace hone {
namespace {

// A Gaussian whose coordinates have scales from 10⁻³ to 10³, means three sds from zero, and neighbours correlated by ρ.
auto scaled_gaussian(int d, double rho) {
  return [d, rho](std::span<const double> z, std::span<double> g) {
    std::ranges::fill(g, 0.0);
    double sum = 0, before = 0, scale_before = 1;
    for (int i = 0; i < d; ++i) {
      const double scale = std::pow(10.0, -3 + 6.0 * i / (d - 1)), x = z[i] / scale - 3;
      const double variance = i > 0 ? 1 - rho * rho : 1, rest = x - (i > 0 ? rho * before : 0);
      sum -= 0.5 * rest * rest / variance;
      g[i] -= rest / variance / scale;
      if (i > 0) g[i - 1] += rho * rest / variance / scale_before;
      before = x;
      scale_before = scale;
    }
    return sum;
  };
}

TEST(FitPosterior, NoTuningOverScalesAndCorrelations) {
  constexpr int d = 7;
  const DensityTarget target(d, scaled_gaussian(d, 0.9));
  for (const bool vcd : {false, true}) {
    PosteriorFitConfig config;
    if (!vcd) config.objective = nullptr;
    const PosteriorFit fit = fit_posterior(target, config);
    EXPECT_TRUE(fit.converged);
    EXPECT_EQ(fit.modes, 1);
    // KL's gradient has no noise where q = p; VCD's has that of some thousand draws
    const double tolerance = vcd ? 0.1 : 0.01;
    for (int i = 0; i < d; ++i) {
      const double scale = std::pow(10.0, -3 + 6.0 * i / (d - 1));
      EXPECT_NEAR(fit.q.whitening.mean()[i] / scale, 3, tolerance) << i;
      EXPECT_NEAR(std::sqrt(fit.q.whitening.variance(i)) / scale, 1, tolerance) << i;
    }
  }
}

TEST(FitPosterior, IndependentCoordinatesAndLowRank) {
  constexpr int d = 7;
  const DensityTarget target(d, scaled_gaussian(d, 0.6));
  PosteriorFitConfig config;
  config.objective = nullptr;
  config.family = QKind::gaussian;
  const PosteriorFit independent = fit_posterior(target, config);
  EXPECT_TRUE(independent.q.whitening.is_diagonal());
  for (int i = 0; i < d; ++i) {  // KL's optimum: the conditional sds, 1 / √(precision)
    const double precision = (i == 0 || i == d - 1 ? 1 : 1 + 0.36) / (1 - 0.36), scale = std::pow(10.0, -3.0 + i);
    EXPECT_NEAR(std::sqrt(independent.q.whitening.variance(i)) / scale, 1 / std::sqrt(precision), 0.02) << i;
  }
  config.family = QKind::gaussian_low_rank;
  const PosteriorFit low_rank = fit_posterior(target, config);
  EXPECT_FALSE(low_rank.q.whitening.is_dense());
  for (int i = 0; i < d; ++i) EXPECT_NEAR(low_rank.q.whitening.mean()[i] / std::pow(10.0, -3.0 + i), 3, 0.1) << i;
}

// Correlations by curvature are exact for a Gaussian; `auto` uses them beyond 300 dimensions.
TEST(FitPosterior, CorrelationsByCurvature) {
  for (const int d : {7, 301}) {
    const DensityTarget target(d, scaled_gaussian(d, 0.9));
    PosteriorFitConfig config;
    config.objective = nullptr;
    config.starts = 2;
    config.family = d == 7 ? QKind::gaussian_curvature : QKind::automatic;
    const PosteriorFit fit = fit_posterior(target, config);
    EXPECT_EQ(fit.q.kind, QKind::gaussian_curvature);
    EXPECT_TRUE(fit.q.whitening.is_dense());
    EXPECT_EQ(fit.q.family->parameters().size(), 2 * static_cast<std::size_t>(d));
    for (int i = 0; i < d; ++i) {
      const double scale = std::pow(10.0, -3 + 6.0 * i / (d - 1));
      EXPECT_NEAR(fit.q.whitening.mean()[i] / scale, 3, 0.02) << i;
      EXPECT_NEAR(std::sqrt(fit.q.whitening.variance(i)) / scale, 1, 0.02) << i;
    }
  }
}

// The library's Gaussian in another class, which may let the fit move its location and scale, or keep them.
class OwnGaussian final : public Family {
 public:
  OwnGaussian(int dimension, bool gives_up) : Family(dimension), inner_(dimension, Covariance::full), gives_(gives_up) {
    for (const Slice& slice : inner_.slices()) add_slice(slice.name, slice.role, slice.size);
    copy(inner_.parameters(), parameters());
  }
  void draw(const RandomSource& random, std::uint32_t iteration, Draws& draws, std::uint32_t first) const override {
    inner().draw(random, iteration, draws, first);
  }
  void log_density(MatrixView<const double> z, Want want, std::span<double> value,
                   MatrixView<double> gradient) const override {
    inner().log_density(z, want, value, gradient);
  }
  void add_pathwise(const Draws& draws, MatrixView<const double> dz, std::span<const double> coefficient,
                    std::span<double> gradient) const override {
    inner().add_pathwise(draws, dz, coefficient, gradient);
  }
  void add_score(MatrixView<const double> z, std::span<const double> coefficient,
                 std::span<double> gradient) const override {
    inner().add_score(z, coefficient, gradient);
  }
  void project() override { floor_scale(Covariance::full, parameters().subspan(dimension())); }
  std::vector<std::size_t> positive_parameters() const override { return inner_.positive_parameters(); }
  void moments(std::span<double> mean, std::span<double> sd) const override { inner().moments(mean, sd); }
  std::optional<LocationScale> standardize() override {
    if (!gives_) return std::nullopt;
    GaussianFamily now = inner();
    const auto result = now.standardize();
    copy(now.parameters(), parameters());
    return result;
  }

 private:
  GaussianFamily inner() const {
    GaussianFamily result = inner_;
    copy(parameters(), result.parameters());
    return result;
  }
  GaussianFamily inner_;
  bool gives_;
};

TEST(CheckedFit, FitsAFamilyOfTheCallersOwn) {
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"});
  CheckedFitConfig config;
  config.fit.budget.gradients = 2'000'000;
  config.draws = 1000;
  for (const bool gives_up : {true, false}) {
    config.fit.own_family = [gives_up](int dimension) { return std::make_unique<OwnGaussian>(dimension, gives_up); };
    const CheckedFit fit = fit_and_check(*posterior, config);
    EXPECT_EQ(fit.fit.q.kind, QKind::own);
    EXPECT_EQ(fit.judgement.verdict, Verdict::use_q) << fit.judgement.reasons.front();
    const double scales[] = {1e-3, 1, 1e3};
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(fit.parameters[i].q_mean / scales[i], 3, 0.15) << i;
      EXPECT_NEAR(fit.parameters[i].q_sd / scales[i], 1, 0.15) << i;
    }
    double mean[3], sd[3];  // over the coordinates of the fit
    fit.fit.q.family->moments(mean, sd);
    EXPECT_EQ(gives_up, mean[0] == 0 && sd[0] == 1);
  }
}

// It moves as the library's own family of the same kind does; only the measure of its changes differs.
TEST(FitPosterior, AFamilyOfTheCallersOwnMovesAsTheLibrarys) {
  const DensityTarget target(3, scaled_gaussian(3, 0.5));
  PosteriorFitConfig config;
  config.budget.gradients = 2000;
  const PosteriorFit usual = fit_posterior(target, config);
  config.own_family = [](int dimension) { return std::make_unique<OwnGaussian>(dimension, true); };
  const PosteriorFit own = fit_posterior(target, config);
  EXPECT_TRUE(std::ranges::equal(usual.q.whitening.mean(), own.q.whitening.mean()));
  ASSERT_EQ(usual.stages.size(), own.stages.size());
  EXPECT_NEAR(usual.stages[0].change, own.stages[0].change, 0.2 * usual.stages[0].change + 0.01);
}

TEST(FitPosterior, RefusesFamiliesThatDoNotFit) {
  const DensityTarget target(2, scaled_gaussian(2, 0.5));
  PosteriorFitConfig config;
  config.family = QKind::own;
  EXPECT_THROW(fit_posterior(target, config), InputError);
  config.own_family = [](int dimension) { return std::make_unique<OwnGaussian>(dimension + 1, true); };
  EXPECT_THROW(fit_posterior(target, config), InputError);
  config.family = QKind::automatic;
  EXPECT_THROW(fit_posterior(target, config), InputError);
  config.own_family = nullptr;
  config.kernel = nullptr;
  EXPECT_THROW(fit_posterior(target, config), InputError);
}

TEST(FitPosterior, SameBitsForOneAndTwoThreads) {
  const DensityTarget target(3, scaled_gaussian(3, 0.5));
  PosteriorFitConfig config;
  config.budget.gradients = 60000;
  std::vector<double> mean[2];
  for (const int threads : {1, 2}) {
    config.threads = threads;
    const PosteriorFit fit = fit_posterior(target, config);
    mean[threads - 1].assign(fit.q.whitening.mean().begin(), fit.q.whitening.mean().end());
    EXPECT_LT(fit.gradients, 62000);
  }
  EXPECT_EQ(mean[0], mean[1]);
}

TEST(FitPosterior, SearchesBeginWhereTheyAreTold) {
  const DensityTarget target(2, [](std::span<const double> z, std::span<double> g) {
    g[0] = 1000 - z[0];
    g[1] = -z[1];
    return z[1] < -50 ? -infinity : -0.5 * (square(g[0]) + square(g[1]));
  });
  PosteriorFitConfig config;
  config.budget.gradients = 1;
  config.init = Matrix<double>(2, 2);
  config.init(0, 0) = 990;
  config.init(0, 1) = 1010;
  const PosteriorFit fit = fit_posterior(target, config);
  ASSERT_EQ(fit.starts.size(), 8u);
  for (std::size_t k = 0; k < 8; ++k) {
    const double off = std::abs(fit.starts[k].start[0] - config.init(0, static_cast<int>(k % 2)));
    EXPECT_EQ(off == 0, k < 2) << off;
    EXPECT_LE(off, 2);
    EXPECT_NEAR(fit.starts[k].end[0], 1000, 0.01);
  }
  config.init(1, 1) = -60;
  EXPECT_THROW(fit_posterior(target, config), InputError);  // outside the support
  config.init = Matrix<double>(3, 1);
  EXPECT_THROW(fit_posterior(target, config), InputError);
  config.init = Matrix<double>(2, 9);
  EXPECT_THROW(fit_posterior(target, config), InputError);  // more than there are searches
}

TEST(CheckedFit, AStopBeforeTheSearchesEndLeavesNothing) {
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"});
  const std::atomic<bool> stop = true;
  CheckedFitConfig config;
  config.fit.budget.stop = &stop;
  EXPECT_THROW(fit_and_check(*posterior, config), Stopped);
}

TEST(CheckedFit, AStopEndsItWithWhatThereIs) {
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"});
  std::atomic<bool> stop = false;
  CheckedFitConfig config;
  config.fit.budget.stop = &stop;
  config.draws = 200;
  config.on_starts = [&](const PosteriorFit& fit) {
    EXPECT_EQ(fit.starts.size(), 16u);  // 8, and 8 wider ones
    stop = true;
  };
  const CheckedFit fit = fit_and_check(*posterior, config);
  EXPECT_TRUE(fit.interrupted);
  EXPECT_TRUE(fit.fit.stages.empty());
  EXPECT_FALSE(fit.fit.converged);
  EXPECT_EQ(fit.refined.steps, 4);
  EXPECT_EQ(fit.judgement.verdict, Verdict::trust_neither);
  EXPECT_EQ(fit.judgement.reasons.front(), "the fit was interrupted before its chains had run");
  EXPECT_LT(fit.gradients - fit.fit.gradients, 3000);
  EXPECT_EQ(fit.parameters.size(), 3u);
  EXPECT_EQ(fit.parameter_count, 3u);
}

// A stop after the first round of the refinement: its states are the result, as if the budget had ended there.
TEST(CheckedFit, AStopInARefinementLeavesItsLastRound) {
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"});
  std::atomic<bool> stop = false;
  CheckedFitConfig config;
  config.draws = 200;
  config.error = 0.002;  // it would take many rounds
  config.fit.budget.stop = &stop;
  int refining = 0;
  const auto run = [&](int rounds) {
    stop = false;
    refining = 0;
    return fit_and_check(*posterior, config, [&](const std::string& text, std::int64_t) {
      stop = stop || (text.starts_with("refining") && ++refining == rounds);
    });
  };
  const CheckedFit first = run(1), second = run(2);
  EXPECT_TRUE(first.interrupted && first.refined.capped);
  EXPECT_EQ(first.refined.steps, config.fit.steps);
  EXPECT_GT(second.refined.steps, first.refined.steps);
  for (const CheckedFit* fit : {&first, &second}) {
    EXPECT_EQ(fit->refined.at.back().steps, fit->refined.steps);
    EXPECT_EQ(fit->refined.states.moves.size(), static_cast<std::size_t>(fit->refined.states.count()));
    EXPECT_EQ(fit->judgement.notes.back(), "the fit was stopped early: all of this rests on what there was by then");
  }
  // An energy is −log p before the step and half a χ² with 3 degrees of freedom.
  Moments kinetic;
  const ChainStates& states = second.refined.states;
  for (int i = 0; i < states.count(); ++i) kinetic.add(states.moves[i].energy + states.log_p[i]);
  EXPECT_NEAR(kinetic.mean(), 1.5, 5 * kinetic.sd() / std::sqrt(0.2 * states.count()));
  double accepted = 0;
  for (const StateMove& move : states.moves) accepted += move.acceptance / states.count();
  EXPECT_NEAR(accepted, second.refined.checks.acceptance, 0.02);
}

// A stop in the middle of a round, or while one is made longer, takes all of it back.
TEST(CheckedFit, AStopWithinARoundTakesItBack) {
  std::atomic<bool> stop = false;
  int refining = 0, rounds = 0, left = 0;  // evaluations until the stop
  const auto normal = scaled_gaussian(3, 0.5);
  const auto counted = [&, normal](std::span<const double> z, std::span<double> gradient) {
    if (refining >= rounds && left-- == 0) stop = true;
    return normal(z, gradient);
  };
  const auto posterior = make_posterior(counted, {"a", "b", "c"});
  CheckedFitConfig config;
  config.draws = 200;
  config.error = 0.002;
  config.fit.budget.stop = &stop;
  const auto run = [&](int round, int more) {
    stop = false;
    refining = 0;
    rounds = round;
    left = more;
    return fit_and_check(*posterior, config, [&](const std::string& text, std::int64_t) {
      refining += text.starts_with("refining");
      stop = stop || (more == 0 && refining == round);
    });
  };
  int steps = 0;
  for (int round = 1; round <= 5; ++round) {
    const CheckedFit whole = run(round, 0), broken = run(round, 900);
    EXPECT_GT(whole.refined.steps, steps);
    steps = whole.refined.steps;
    EXPECT_TRUE(broken.interrupted);
    EXPECT_EQ(broken.refined.steps, whole.refined.steps);
    EXPECT_EQ(broken.refined.states.log_p, whole.refined.states.log_p);
    EXPECT_EQ(broken.refined.before.log_p, whole.refined.before.log_p);
    EXPECT_EQ(broken.refined.log_pt, whole.refined.log_pt);
    EXPECT_EQ(broken.refined.checks.proposals, whole.refined.checks.proposals);
    EXPECT_EQ(broken.judgement.reasons, whole.judgement.reasons);
  }
}

// A target that wants large batches gets them, and the bits stay the same.
TEST(CheckedFit, LargeBatchesChangeNoBit) {
  struct Large final : Posterior {
    explicit Large(const Posterior& own, int batch) : posterior(own), good(batch) {}
    int dimension() const override { return posterior.dimension(); }
    const std::vector<std::string>& names() const override { return posterior.names(); }
    const std::vector<std::string>& coordinate_names() const override { return posterior.coordinate_names(); }
    std::size_t parameter_count() const override { return posterior.parameter_count(); }
    void constrain(std::span<const double> z, std::span<double> x) const override { posterior.constrain(z, x); }
    int good_batch() const override { return good; }
    void compute(MatrixView<const double> z, Want want, std::span<double> value, MatrixView<double> g) const override {
      largest = std::max(largest, z.cols());
      posterior.evaluate(z, want, value, g);
    }
    const Posterior& posterior;
    int good;
    mutable int largest = 0;
  };
  const auto posterior = make_posterior(scaled_gaussian(200, 0.5), [] {
    std::vector<std::string> names;
    for (int i = 0; i < 200; ++i) names.push_back("z." + std::to_string(i));
    return names;
  }());
  CheckedFitConfig config;
  config.fit.family = QKind::gaussian;
  config.fit.budget.gradients = 1;
  config.draws = 300;
  const Large small(*posterior, 1), large(*posterior, 10000);
  const CheckedFit one = fit_and_check(small, config), other = fit_and_check(large, config);
  EXPECT_EQ(one.log_p, other.log_p);
  EXPECT_EQ(one.gradients, other.gradients);
  EXPECT_GE(large.largest, 256);
}

TEST(FitPosterior, ImproperPosteriorsAreNamed) {
  const DensityTarget flat(2, [](std::span<const double> z, std::span<double> g) {
    g[0] = -z[0];
    g[1] = 0;
    return -0.5 * z[0] * z[0];
  });
  try {
    fit_posterior(flat, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("coordinate 2"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("improper"), std::string::npos);
  }
  const DensityTarget nowhere(1, [](std::span<const double>, std::span<double>) { return -infinity; });
  EXPECT_THROW(fit_posterior(nowhere, {}), InputError);
}

TEST(FitPosterior, ModelsThatThrowInPlaces) {
  const DensityTarget target(2, [](std::span<const double> z, std::span<double> g) {
    if (z[0] > 1.5) throw std::domain_error("too large");
    g[0] = -z[0];
    g[1] = -z[1];
    return -0.5 * (z[0] * z[0] + z[1] * z[1]);
  });
  PosteriorFitConfig config;
  config.budget.gradients = 100000;
  const PosteriorFit fit = fit_posterior(target, config);
  EXPECT_GT(fit.dropped_draws, 0);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(std::isfinite(fit.q.whitening.mean()[i]));
}

// Two modes of masses 0.3 and 0.7, eight sds apart.
auto two_modes() {
  return make_posterior(
      [](std::span<const double> z, std::span<double> g) {
        const double a = std::log(0.3) - 0.5 * square(z[0] - 4), b = std::log(0.7) - 0.5 * square(z[0] + 4);
        const double top = std::max(a, b), sum = top + std::log(std::exp(a - top) + std::exp(b - top));
        const double share = std::exp(a - sum);
        g[0] = -share * (z[0] - 4) - (1 - share) * (z[0] + 4);
        g[1] = -z[1];
        return sum - 0.5 * z[1] * z[1];
      },
      {"x", "y"});
}

TEST(CheckedFit, ModesGetTheirMassFromImportanceWeights) {
  const auto posterior = two_modes();
  CheckedFitConfig config;
  config.fit.budget.gradients = 2'000'000;
  config.draws = 2000;
  const CheckedFit fit = fit_and_check(*posterior, config);
  EXPECT_EQ(fit.fit.q.kind, QKind::mixture);
  ASSERT_EQ(fit.findings.q.mode_mass.size(), 2u);
  EXPECT_NEAR(std::max(fit.findings.q.mode_mass[0], fit.findings.q.mode_mass[1]), 0.7, 4 * std::sqrt(0.21 / 2000));
  EXPECT_NEAR(fit.parameters[0].mean, -1.6, 4 * std::sqrt((1 + 16 * 4 * 0.21) * 2 / 2000));
  EXPECT_NE(fit.judgement.verdict, Verdict::trust_neither);
  config.fit.family = QKind::gaussian_full;  // one Gaussian cannot stand for both
  EXPECT_EQ(fit_and_check(*posterior, config).judgement.verdict, Verdict::trust_neither);
  config.fit.family = QKind::automatic;  // nor can components that know of one mode only
  config.fit.own_family = [](int dimension) { return std::make_unique<MixtureFamily>(dimension, 3, Covariance::full); };
  const CheckedFit own = fit_and_check(*posterior, config);
  EXPECT_FALSE(own.findings.component_per_mode);
  EXPECT_EQ(own.judgement.verdict, Verdict::trust_neither);
}

// A wide mode about 0 in three dimensions and a narrow one at 4.3 of its sds, of equal mass: hardly any search ends
// there by chance.
TEST(FitPosterior, FindsANarrowModeFarOut) {
  const auto density = [](std::span<const double> z, std::span<double> g) {
    double wide = -3 * std::log(2.0), narrow = -3 * std::log(0.3);
    for (const double x : z) {
      wide -= 0.5 * square(x / 2);
      narrow -= 0.5 * square((x - 5) / 0.3);
    }
    const double total = log_sum_exp(std::vector{wide, narrow});
    for (std::size_t i = 0; i < z.size(); ++i)
      g[i] = -std::exp(wide - total) * z[i] / 4 - std::exp(narrow - total) * (z[i] - 5) / 0.09;
    return total;
  };
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    PosteriorFitConfig config;
    config.seed = seed;
    config.kl_stages = 1;
    config.objective = nullptr;
    found += fit_posterior(DensityTarget(3, density), config).modes == 2;
  }
  EXPECT_GE(found, 17);
}

TEST(CheckedFit, SameBitsForOneAndTwoThreads) {
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"});
  CheckedFitConfig config;
  config.fit.budget.gradients = 400000;
  config.draws = 200;
  const CheckedFit one = fit_and_check(*posterior, config);
  config.fit.threads = 2;
  const CheckedFit two = fit_and_check(*posterior, config);
  EXPECT_EQ(one.parameters[1].mean, two.parameters[1].mean);
  EXPECT_EQ(one.log_q, two.log_q);
  EXPECT_EQ(one.findings.q.p_value, two.findings.q.p_value);
  EXPECT_EQ(one.gradients, two.gradients);
}

// log q of the files is that of q over z, normalised.
TEST(CheckedFit, LogDensityOfQIsNormalisedOverZ) {
  const auto posterior = make_posterior(scaled_gaussian(2, 0.5), {"a", "b"});
  CheckedFitConfig config;
  config.fit.budget.gradients = 200000;
  config.draws = 100;
  const CheckedFit fit = fit_and_check(*posterior, config);
  const Whitening& w = fit.fit.q.whitening;
  GaussianFamily q(2, Covariance::full);
  copy(w.mean(), q.mean());
  copy(w.packed_lower(), q.scale());
  Matrix<double> z(2, fit.refined.z0.cols());
  for (int i = 0; i < z.cols(); ++i) w.to_z(fit.refined.z0.column(i), z.column(i));
  // scale_floor does not matter here: only the density is used
  std::vector<double> log_q(z.cols());
  q.log_density(z, Want::value, log_q, {});
  for (int i = 0; i < z.cols(); ++i) EXPECT_NEAR(log_q[i], fit.log_q0[i], 1e-6);
}

TEST(Rewhiten, LeavesTheMixtureWhatItWas) {
  FittedQ q;
  q.kind = QKind::mixture;
  q.whitening = Whitening::dense({1, -2}, std::vector<double>{2, 0.3, 0.5});
  auto family = std::make_unique<MixtureFamily>(2, 2, Covariance::full);
  PhiloxSource(5).normals({Purpose::start}, family->parameters());
  for (const std::size_t i : family->positive_parameters())
    family->parameters()[i] = 0.5 + std::abs(family->parameters()[i]);
  const std::vector<double> before(family->parameters().begin(), family->parameters().end());
  q.family = std::move(family);
  const std::vector<double> z{0.7, -1.1};
  const auto log_q = [&] {
    std::vector<double> e(2);
    double value = 0;
    q.whitening.to_e(z, e);
    q.family->log_density({e.data(), 2, 1}, Want::value, {&value, 1}, {});
    return value - q.whitening.log_det();
  };
  const double density = log_q();
  EXPECT_NEAR(rewhiten(q, before, PhiloxSource(6)).change, 0, 1e-12);
  EXPECT_NEAR(log_q(), density, 1e-12);
}

// Gaussians that differ by a shift and a scale: KL both ways in closed form.
TEST(Rewhiten, ChangeIsTheSymmetrisedKl) {
  FittedQ q;
  q.whitening = Whitening::dense({0}, std::vector<double>{2});
  auto family = std::make_unique<GaussianFamily>(1, Covariance::full);
  family->mean()[0] = 0.3;
  family->scale()[0] = 1.2;
  q.family = std::move(family);
  const std::vector<double> before{0, 1};
  const double v = 1.44, forward = 0.5 * (v + 0.09 - 1 - std::log(v)),
               back = 0.5 * (1 / v + 0.09 / v - 1 + std::log(v));
  EXPECT_NEAR(rewhiten(q, before, PhiloxSource(1)).change, forward + back, 1e-12);
  EXPECT_NEAR(q.whitening.mean()[0], 0.6, 1e-12);
  EXPECT_NEAR(std::sqrt(q.whitening.variance(0)), 2.4, 1e-12);
}

// eq. gradient_term2 in a stage of the fit: whitened coordinates, random lengths and step sizes, leave-one-out
// baseline. The mean of the ascent must be minus the gradient of the VCD itself, by differences of its value under
// the same kernel.
TEST(FitPosterior, TheGradientOfAStageIsThatOfTheVcd) {
  const DensityTarget target(1, [](std::span<const double> z, std::span<double> g) {  // a skew density
    g[0] = 2 - std::exp(0.5 * z[0]);
    return 2 * z[0] - 2 * std::exp(0.5 * z[0]);
  });
  const Whitening whitening = Whitening::dense({2.5}, std::vector<double>{0.9});
  const WhitenedTarget whitened(target, whitening);
  FitConfig config;
  config.objective = test::by_vcd({.entropy = Entropy::sampled, .baseline = BaselineKind::leave_one_out});
  config.kernel = test::hmc({5, 4, StepSizes::varied});
  config.refine = {.steps = 2, .adapt = Adapt::off, .step_size = 0.4, .acceptance = 0.8};
  config.optimizer = {.kind = OptimizerKind::adam,  // θ does not move
                      .rate_location = 0,
                      .rate_scale = 0,
                      .rate_weight = 0,
                      .decay = 1,
                      .decay_every = 0,
                      .positive = PositiveSteps::logarithmic};
  config.draws_per_iteration = 16;
  GaussianFamily q(1, Covariance::full);
  const PhiloxSource random(3);
  Fit fit(whitened, q, config, random);
  Moments ascent[2];
  for (int i = 0; i < 40000; ++i) {
    fit.step();
    for (int k = 0; k < 2; ++k) ascent[k].add(fit.ascent()[k]);
  }
  for (int k = 0; k < 2; ++k) {
    Moments slope;
    for (std::uint64_t batch = 0; batch < 40; ++batch) {
      GaussianFamily moved(1, Covariance::full);
      const auto value = [&] {
        return estimate_divergence(whitened, moved,
                                   {.kernel = config.kernel, .steps = 2, .step_size = 0.4, .draws = 15000},
                                   PhiloxSource(batch))
            .vcd.mean;
      };
      slope.add(test::derivative_in(moved.parameters()[k], value, k == 0 ? 50 : 0.1));  // a step of 0.05 or 0.1
    }
    const double se = std::hypot(slope.estimate().se, ascent[k].estimate().se);
    EXPECT_LT(se, 0.02 * std::abs(slope.mean()));
    EXPECT_NEAR(ascent[k].mean(), -slope.mean(), 4 * se) << k;
  }
}

TEST(Fit, NoStepFromChainsThatDoNotMove) {
  const DensityTarget target(2, scaled_gaussian(2, 0.1));
  GaussianFamily q(2, Covariance::full);
  FitConfig config;
  config.refine.step_size = 1e3;
  config.refine.adapt = Adapt::off;
  config.least_acceptance = 0.5;
  const PhiloxSource random(1);
  Fit fit(target, q, config, random);
  const std::vector<double> before(q.parameters().begin(), q.parameters().end());
  for (int i = 0; i < 5; ++i) fit.step();
  EXPECT_EQ(fit.skipped_steps(), 5);
  EXPECT_TRUE(std::ranges::equal(before, q.parameters()));
}

}  // namespace
}  // namespace hone
