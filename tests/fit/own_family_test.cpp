// A family and an objective of the caller's own in a fit.
#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/error.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/fit/checked_fit.hpp"
#include "hone/objective/kl.hpp"
#include "hone/target/density.hpp"
#include "hone/tensor/vectors.hpp"
#include "tests/support/scaled_gaussian.hpp"

namespace hone {
namespace {

using test::scaled_gaussian;

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

// The KL under a name of one's own; it is no sum of the paper's terms.
class NamedObjective final : public Objective {
 public:
  explicit NamedObjective(std::string name) : name_(std::move(name)) {}
  std::unique_ptr<Objective> clone() const override { return std::make_unique<NamedObjective>(name_); }
  std::string name() const override { return name_; }
  bool refines() const override { return false; }
  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override {
    kl_.add_ascent(family, evidence, gradient);
  }

 private:
  std::string name_;
  Kl kl_{{.entropy = Entropy::sampled}};
};

// Names are for messages: one that is called as the library's VCD is followed all the same.
TEST(CheckedFit, TheNameOfAnObjectiveDecidesNothing) {
  const auto posterior = make_posterior(scaled_gaussian(3, 0.5), {"a", "b", "c"});
  std::vector<std::vector<double>> means;
  for (const char* name : {"own", "vcd"}) {
    CheckedFitConfig config;
    config.fit.objective = std::make_shared<NamedObjective>(name);
    const CheckedFit fit = fit_and_check(*posterior, config);
    means.emplace_back(fit.fit.q.whitening.mean().begin(), fit.fit.q.whitening.mean().end());
  }
  EXPECT_EQ(means[0], means[1]);
}

// A VCD under a name of one's own, which counts how often a fit asks for its gradient.
class CountedVcd final : public Objective {
 public:
  CountedVcd(const VcdConfig& config, int* count) : config_(config), vcd_(config), count_(count) {}
  std::unique_ptr<Objective> clone() const override { return std::make_unique<CountedVcd>(config_, count_); }
  std::string name() const override { return "counted"; }
  bool refines() const override { return true; }
  int least_draws() const override { return vcd_.least_draws(); }
  std::optional<ObjectiveTerms> terms() const override { return vcd_.terms(); }
  void add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) override {
    ++*count_;
    vcd_.add_ascent(family, evidence, gradient);
  }

 private:
  VcdConfig config_;
  Vcd vcd_;
  int* count_;
};

constexpr VcdConfig sampled_vcd{.entropy = Entropy::sampled, .baseline = BaselineKind::leave_one_out};

// Independent coordinates for a Gaussian whose correlation is 0.9.
CheckedFit fit_correlated(std::shared_ptr<const Objective> objective, std::uint64_t seed = 1) {
  const auto density = [](std::span<const double> z, std::span<double> g) {
    const double precision = 1 / (1 - 0.9 * 0.9);
    g[0] = -precision * (z[0] - 0.9 * z[1]);
    g[1] = -precision * (z[1] - 0.9 * z[0]);
    return 0.5 * (z[0] * g[0] + z[1] * g[1]);
  };
  CheckedFitConfig config;
  config.coordinates = ChainCoordinates::affine;  // the same chains for every objective
  config.fit.family = QKind::gaussian;
  config.fit.seed = seed;
  config.fit.objective = std::move(objective);
  config.fit.budget.gradients = 1'000'000;
  return fit_and_check(*make_posterior(density, {"x", "y"}), config);
}

// Only the plain VCD is fitted by the moments of the chains; what a caller chose of α, ramp, bound and estimators is
// followed by stochastic gradients. Stages have the objective's own name in both cases.
TEST(CheckedFit, FollowsTheObjectiveThatWasGiven) {
  const auto gradients_of = [](auto change) {
    VcdConfig config = sampled_vcd;
    change(config);
    int count = 0;
    const CheckedFit fit = fit_correlated(std::make_shared<CountedVcd>(config, &count));
    EXPECT_EQ(fit.fit.stages.back().objective, "counted");
    return count;
  };
  EXPECT_EQ(gradients_of([](VcdConfig&) {}), 0);
  EXPECT_EQ(gradients_of([](VcdConfig& c) { c.baseline = BaselineKind::global; }), 0);
  EXPECT_GT(gradients_of([](VcdConfig& c) { c.alpha = 0.5; }), 0);
  EXPECT_GT(gradients_of([](VcdConfig& c) { c.ramp = {.from = 10, .until = 20}; }), 0);
  EXPECT_GT(gradients_of([](VcdConfig& c) { c.score_bound = 3; }), 0);
  EXPECT_GT(gradients_of([](VcdConfig& c) { c.estimator = Estimator::large_t; }), 0);
  EXPECT_GT(gradients_of([](VcdConfig& c) { c.first_term = FirstTerm::score; }), 0);
}

// With α near 0, q is that of the KL, whose sds are conditional ones; with α = 1 it is wider.
TEST(CheckedFit, AlphaHasItsEffect) {
  const auto sd = [](double alpha) {
    VcdConfig config = sampled_vcd;
    config.alpha = alpha;
    Moments over_seeds;  // a single q follows few states: its sd varies by 3 %
    for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8})
      over_seeds.add(fit_correlated(std::make_shared<Vcd>(config), seed).parameters[0].q_sd);
    return over_seeds.mean();
  };
  const double conditional = std::sqrt(1 - 0.9 * 0.9), small = sd(0.001), half = sd(0.5), one = sd(1);
  EXPECT_NEAR(small, conditional, 0.05);
  EXPECT_GT(half, small + 0.03);
  EXPECT_GT(one, half + 0.03);
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

}  // namespace
}  // namespace hone
