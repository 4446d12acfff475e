// Planted failures of q and of the chains, each to be called right; and a q that is exact.
#include "hone/assess/verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <numbers>

#include "hone/assess/chain_checks.hpp"
#include "hone/assess/q_checks.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/target/density.hpp"
#include "tests/support/methods.hpp"

namespace hone {
namespace {

using Density = std::function<double(std::span<const double>, std::span<double>)>;

double standard_normal(std::span<const double> z, std::span<double> gradient) {
  double sum = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    gradient[i] = -z[i];
    sum -= 0.5 * z[i] * z[i];
  }
  return sum;
}

struct Plan {
  int dimension = 2;
  double mean = 0, sd = 1;  // of q, in every coordinate
  RefinedConfig config;
  std::vector<double> centre = {};  // of the starts: coordinate 0 of each; at q's mean where empty
};

struct Assessed {
  Judgement judgement;
  Findings findings;
  bool says(const std::string& part) const {
    for (const auto* list : {&judgement.reasons, &judgement.notes})
      for (const std::string& text : *list)
        if (text.find(part) != std::string::npos) return true;
    return false;
  }
};

Assessed assess(const Density& density, Plan plan) {
  const DensityTarget target(plan.dimension, density);
  GaussianFamily q(plan.dimension, Covariance::full);
  for (double& x : q.mean()) x = plan.mean;
  set_isotropic(Covariance::full, plan.sd, q.scale());
  SuperStarts starts{Matrix<double>(plan.dimension, 8), std::vector<int>(8, 0)};
  PhiloxSource(plan.config.seed + 99).normals({Purpose::start}, starts.z.view().flat());
  for (int k = 0; k < 8; ++k)
    for (int i = 0; i < plan.dimension; ++i)
      starts.z(i, k) =
          (plan.centre.empty() || i > 0 ? plan.mean : plan.centre[k % plan.centre.size()]) + plan.sd * starts.z(i, k);
  const RefinedDraws refined = refine_draws(target, q, starts, plan.config);
  std::vector<double> ratio;
  for (std::size_t i = 0; i < refined.log_p0.size(); ++i) ratio.push_back(refined.log_p0[i] - refined.log_q0[i]);
  const Whitening identity =
      Whitening::diagonal(std::vector<double>(plan.dimension, 0.0), std::vector<double>(plan.dimension, 1.0));
  Assessed result;
  Findings& f = result.findings;
  f.dimension = plan.dimension;
  f.starts = 8;
  f.chains = refined.checks;
  f.capped = refined.capped;
  f.steps = refined.steps;
  f.at = refined.at;
  f.vcd = refined.vcd;
  f.q = check_q(refined, q, identity, smooth_weights(ratio), {plan.config.seed + 5, 1});
  result.judgement = judge(f, {});
  return result;
}

RefinedConfig quick(int draws = 2000) {
  RefinedConfig config;
  config.q_draws = draws;
  config.pairs = draws / 4;
  config.most_steps = 64;
  return config;
}

TEST(Verdict, QTooNarrow) {
  const Assessed a = assess(standard_normal, {3, 0, 0.5, quick()});
  EXPECT_EQ(a.judgement.verdict, Verdict::use_refined);
  EXPECT_LT(a.findings.q.sd_ratio[0], 0.55);
  EXPECT_LT(a.findings.q.p_value, 0.01);
}

TEST(Verdict, QShifted) {
  const Assessed a = assess(standard_normal, {3, 0.4, 1, quick()});
  EXPECT_EQ(a.judgement.verdict, Verdict::use_refined);
  EXPECT_NEAR(a.findings.q.shift[0], 0.4, 0.1);
  EXPECT_TRUE(a.says("mean"));
}

// Each marginal of q is right; only the correlation is missing.
TEST(Verdict, QWrongAlongADirectionOnly) {
  constexpr double rho = 0.6;
  const Density correlated = [](std::span<const double> z, std::span<double> g) {
    const double v = 1 - rho * rho;
    g[0] = -(z[0] - rho * z[1]) / v;
    g[1] = -(z[1] - rho * z[0]) / v;
    return 0.5 * (g[0] * z[0] + g[1] * z[1]);
  };
  const Assessed a = assess(correlated, {2, 0, 1, quick()});
  EXPECT_EQ(a.judgement.verdict, Verdict::use_refined);
  EXPECT_LT(std::abs(std::log(a.findings.q.sd_ratio[0])), 0.07);
  EXPECT_NEAR(a.findings.q.narrowest.front().sd_ratio, 1 / std::sqrt(1 + rho), 0.06);
  EXPECT_NEAR(a.findings.q.widest.front().sd_ratio, 1 / std::sqrt(1 - rho), 0.12);
  const auto& v = a.findings.q.narrowest.front().vector;
  EXPECT_NEAR(std::abs(v[0] + v[1]), std::sqrt(2.0), 0.05);
}

TEST(Verdict, OneOfTwoModes) {
  const Density two = [](std::span<const double> z, std::span<double> g) {
    const double a = -0.5 * square(z[0] - 6), b = -0.5 * square(z[0] + 6);
    const double top = std::max(a, b), sum = top + std::log(std::exp(a - top) + std::exp(b - top));
    const double share = std::exp(a - sum);
    g[0] = -share * (z[0] - 6) - (1 - share) * (z[0] + 6);
    g[1] = -z[1];
    return sum - 0.5 * z[1] * z[1];
  };
  // q sits in one mode, at 0, and the starts reached both
  const Density shifted = [&](std::span<const double> z, std::span<double> g) {
    const double moved[2] = {z[0] + 6, z[1]};
    return two(moved, g);
  };
  const Assessed a = assess(shifted, {2, 0, 1, quick(), {0, -12}});
  EXPECT_EQ(a.judgement.verdict, Verdict::trust_neither);
  EXPECT_GT(a.findings.chains.nested_rhat, 2);
}

TEST(Verdict, HeavyTail) {
  const Density student = [](std::span<const double> z, std::span<double> g) {  // two degrees of freedom
    double sum = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      sum -= 1.5 * std::log1p(0.5 * z[i] * z[i]);
      g[i] = -1.5 * z[i] / (1 + 0.5 * z[i] * z[i]);
    }
    return sum;
  };
  const Assessed a = assess(student, {2, 0, 1, quick()});
  EXPECT_NE(a.judgement.verdict, Verdict::use_q);
  EXPECT_TRUE(a.says("heavier tail"));
}

TEST(Verdict, AChainThatDoesNotMove) {
  Plan plan{2, 0, 0.5, quick(500)};
  plan.config.step_size = 50;  // every proposal is rejected: the VCD is zero, q's sd half the truth
  plan.config.kernel = test::hmc({5, 4});
  const Assessed a = assess(standard_normal, plan);
  EXPECT_EQ(a.judgement.verdict, Verdict::trust_neither);
  EXPECT_NEAR(a.findings.at.back().vcd.mean, 0, 1e-12);
}

// Five leapfrog steps of exactly half a turn: accepted always, large jumps, and z_t = −z0.
TEST(Verdict, AMirrorAtTheResonance) {
  Plan plan{2, 0, 0.5, quick(500)};
  plan.config.pairs = 500;
  plan.config.kernel = test::hmc({5, 0});
  plan.config.step_size = 2 * std::sin(std::numbers::pi / 10);  // leapfrog's own frequency: cos(π/5) = 1 − ε²/2
  const Assessed a = assess(standard_normal, plan);
  EXPECT_GT(a.findings.at.front().acceptance, 0.999);
  EXPECT_NEAR(a.findings.at.front().jump, 2, 4 * 2 / std::sqrt(500.0));
  EXPECT_NEAR(a.findings.at.back().vcd.mean, 0, 1e-6);
  EXPECT_EQ(a.judgement.verdict, Verdict::trust_neither);
  EXPECT_TRUE(a.says("still depend"));
}

TEST(Verdict, TheNeckOfAFunnelWithTooLargeAStep) {
  const Density funnel = [](std::span<const double> z, std::span<double> g) {
    double sum = -z[0] * z[0] / 18;
    g[0] = -z[0] / 9;
    for (std::size_t i = 1; i < z.size(); ++i) {
      const double scaled = z[i] * z[i] * std::exp(-z[0]);
      sum -= 0.5 * (scaled + z[0]);
      g[i] = -z[i] * std::exp(-z[0]);
      g[0] += 0.5 * (scaled - 1);
    }
    return sum;
  };
  Plan plan{6, 0, 1.5, quick(1000)};
  plan.config.step_size = 0.8;
  plan.config.kernel = test::hmc({5, 4});
  const Assessed a = assess(funnel, plan);
  EXPECT_EQ(a.judgement.verdict, Verdict::trust_neither);
}

// q = p: use-q nearly always (stated rate: at least 95 of 100), and p-values uniform.
TEST(Verdict, AnExactQIsUsedAndItsPValuesAreUniform) {
  constexpr int runs = 100;
  int used = 0, tenth[10] = {};
  for (int run = 0; run < runs; ++run) {
    Plan plan{3, 0, 1, quick(4000)};
    plan.config.seed = static_cast<std::uint64_t>(run + 1);
    const Assessed a = assess(standard_normal, plan);
    used += a.judgement.verdict == Verdict::use_q;
    ++tenth[std::min(9, static_cast<int>((a.findings.q.p_value - 5e-4) * 10))];
  }
  EXPECT_GE(used, 95);
  double chi_square = 0;
  for (int i = 0; i < 10; ++i) {
    chi_square += square(tenth[i] - runs / 10.0) / (runs / 10.0);
    std::printf("p-values %.1f … %.1f: %s\n", 0.1 * i, 0.1 * (i + 1), std::string(tenth[i], '*').c_str());
  }
  EXPECT_LT(chi_square, 27.9);  // 9 degrees of freedom: once in a thousand
}

TEST(Verdict, SaysInWordsThatWeightsAreConstant) {
  Assessed a = assess(standard_normal, {2, 0, 1, quick()});
  EXPECT_EQ(a.findings.q.k_hat, -infinity);
  EXPECT_TRUE(a.says("the importance weights of q's draws are nearly constant"));
  EXPECT_FALSE(a.says("inf")) << "of k-hat";
  a.judgement = judge(a.findings, {}, Subject::draws);
  EXPECT_TRUE(a.says("the importance weights of the draws are nearly constant"));
  EXPECT_FALSE(a.says("inf"));
  a.findings.q.k_hat = 0.3;
  a.judgement = judge(a.findings, {});
  EXPECT_TRUE(a.says("k-hat 0.30: importance-weighted expectations are reported too"));
}

TEST(Verdict, RegionsWithoutDensityAreCountedAndSurvived) {
  const Density half = [](std::span<const double> z, std::span<double> g) {
    g[0] = -z[0];
    g[1] = -z[1];
    return z[0] < 0 ? -infinity : -0.5 * (z[0] * z[0] + z[1] * z[1]);
  };
  const DensityTarget target(2, half);
  GaussianFamily q(2, Covariance::full);
  SuperStarts starts{Matrix<double>(2, 8), std::vector<int>(8, 0)};
  for (int k = 0; k < 8; ++k) starts.z(0, k) = 0.2 * (k + 1);
  const RefinedDraws refined = refine_draws(target, q, starts, quick());
  EXPECT_NEAR(static_cast<double>(refined.dropped_draws), 1000, 4 * std::sqrt(500.0));
  EXPECT_EQ(refined.z0.cols() + refined.dropped_draws, 2000);
  std::vector<double> x;
  for (int i = 0; i < refined.states.count(); ++i) x.push_back(refined.states.z(0, i));
  const Estimate mean = mean_over_chains(x, refined.states.chains);
  EXPECT_NEAR(mean.mean, std::sqrt(2 / std::numbers::pi), 4 * mean.se);
}

// A q of several components covers the modes only if it has one for each of them.
TEST(Verdict, ModesNeedAComponentEach) {
  Findings f;
  f.dimension = 1;
  f.chains = {.nested_rhat = 1, .drift_limit = 4, .acceptance = 0.8, .proposals = 100, .bfmi = 1};
  f.q.mode_mass = f.q.q_weight = {0.5, 0.5};
  for (const int modes : {1, 2})
    for (const bool each : {false, true}) {
      f.modes = modes;
      f.component_per_mode = each;
      const Verdict expected = modes == 1 || each ? Verdict::use_q : Verdict::trust_neither;
      EXPECT_EQ(judge(f, {}).verdict, expected) << modes << " modes";
    }
}

TEST(RefinedDraws, RefusesStartsThatDoNotFit) {
  const DensityTarget target(2, Density(standard_normal));
  const GaussianFamily q(2, Covariance::full);
  const auto refuse = [&](const SuperStarts& starts) {
    EXPECT_THROW(refine_draws(target, q, starts, quick(100)), InputError);
  };
  refuse({Matrix<double>(2, 8), {}});
  refuse({Matrix<double>(3, 8), std::vector<int>(8, 0)});
  refuse({Matrix<double>(2, 8), std::vector<int>(7, 0)});
  refuse({Matrix<double>(2, 2), {-1, -1}});
  refuse({Matrix<double>(2, 3), {0, 0, 1}});
}

// Few chains that are in the posterior from the start. Whatever moved, moved by chance: it exceeds the limit in one of
// fifty runs, as the limit promises.
TEST(JudgeMoments, WhatMovesByChanceIsNoDrift) {
  constexpr int runs = 2000, chains = 16, each = 8;
  int beyond = 0;
  for (int run = 0; run < runs; ++run) {
    ChainStates before(1, chains, each), now(1, chains, each);
    const PhiloxSource random(static_cast<std::uint64_t>(run));
    random.normals({Purpose::draw, 1}, before.z.view().flat());
    random.normals({Purpose::draw, 2}, now.z.view().flat());
    ChainChecks checks;
    judge_moments(before, now, checks);
    beyond += checks.drift > checks.drift_limit;
  }
  EXPECT_LT(beyond, 0.02 * runs);
}

// Chains that stand still remember all, however few of them are left.
TEST(JudgeMemory, FewFrozenPairsAreSeen) {
  constexpr int pairs = 16;
  const std::vector<int> component(pairs);
  for (const int d : {10, 100}) {
    Matrix<double> z0(d, pairs), other(d, pairs);
    std::vector<double> log_p0(pairs), other_p(pairs);
    PhiloxSource(1).normals({Purpose::draw, 1}, z0.view().flat());
    PhiloxSource(1).normals({Purpose::draw, 2}, other.view().flat());
    PhiloxSource(1).normals({Purpose::draw, 3}, log_p0);
    PhiloxSource(1).normals({Purpose::draw, 4}, other_p);
    ChainChecks frozen, fresh;
    judge_memory({z0, log_p0, z0, log_p0, component, 1, pairs}, frozen);
    EXPECT_NEAR(frozen.memory, 1, 1e-12);
    EXPECT_GT(frozen.memory, frozen.memory_limit) << d;
    judge_memory({z0, log_p0, other, other_p, component, 1, pairs}, fresh);
    EXPECT_LT(fresh.memory, fresh.memory_limit) << d;
  }
}

// Two modes, few chains left in each. The super-chains of the first differ by little, but by far more than chance.
TEST(JudgeStarts, FewSuperChainsThatDifferAreSeen) {
  constexpr int per_super = 2, others = 8;
  for (const int supers : {2, 3, 4})
    for (const double shift : {0.0, 0.1}) {
      std::vector<int> mode(static_cast<std::size_t>(supers), 0);
      mode.resize(static_cast<std::size_t>(supers + others), 1);
      const int chains = per_super * (supers + others);
      ChainStates states(1, chains, 2);
      std::vector<double> noise(static_cast<std::size_t>(2 * chains));
      PhiloxSource(4).normals({Purpose::draw}, noise);
      for (int i = 0; i < states.count(); ++i) {
        const double side = i % 2 == 0 ? 1 : -1;
        const auto c = static_cast<std::size_t>(i / 2);
        states.z(0, i) = side + 1e-4 * noise[c] + (i / 2 < per_super ? shift : 0);
        states.log_p[static_cast<std::size_t>(i)] = side + 1e-4 * noise[c + static_cast<std::size_t>(chains)];
      }
      ChainChecks checks;
      judge_starts(states, 0, per_super, mode, checks);
      EXPECT_LT(checks.nested_rhat, most_rhat);
      EXPECT_EQ(checks.spread > checks.spread_limit, shift > 0) << supers << " super-chains";
    }
}

// Sds of the parameters must be known. That of a rare event among the other values need not be.
TEST(LargestErrors, OfSdsAreThoseOfTheParameters) {
  constexpr int chains = 64, each = 30;
  Matrix<double> values(2, chains * each);
  std::vector<double> z(static_cast<std::size_t>(values.cols()));
  PhiloxSource(2).normals({Purpose::draw}, z);
  for (int i = 0; i < values.cols(); ++i) {
    values(0, i) = z[static_cast<std::size_t>(i)];
    values(1, i) = z[static_cast<std::size_t>(i)] > 2.8 ? 1 : 0;
  }
  const LargestErrors both = largest_errors(values, chains, 2), one = largest_errors(values, chains, 1);
  EXPECT_EQ(both.sd_value, 1);
  EXPECT_GT(both.sd, most_sd_error);
  EXPECT_EQ(one.sd_value, 0);
  EXPECT_NEAR(one.sd, 1 / std::sqrt(2.0 * values.cols()), 0.3 / std::sqrt(2.0 * values.cols()));
  EXPECT_EQ(one.mean, both.mean);
}

TEST(Verdict, NamesTheSdThatIsNotKnownAndCountsTheChains) {
  Findings f;
  f.dimension = 1;
  f.chains = {.nested_rhat = 1, .drift_limit = 4, .sd_error = 0.19, .acceptance = 0.8, .proposals = 100, .bfmi = 1};
  f.chains.chains = 32;
  f.chains.chains_begun = 256;
  f.sd_error_name = "tau";
  const Assessed few{judge(f, {}), f};
  EXPECT_EQ(few.judgement.verdict, Verdict::trust_neither);
  EXPECT_TRUE(few.says("the sd of tau is known to 19 % only"));
  EXPECT_TRUE(few.says("the budget let 32 of 256 chains go on"));
  f.chains.chains = 256;
  EXPECT_FALSE(Assessed({judge(f, {}), f}).says("chains go on"));
}

// Step sizes shrink until nothing diverges; what a funnel leaves then is a low BFMI, or steps that are always accepted.
TEST(Verdict, AFunnelGetsAdviceThoughNothingDivergesAnyMore) {
  Findings f;
  f.dimension = 1;
  f.steps = 256;
  f.chains = {.nested_rhat = 1.02, .drift_limit = 4, .acceptance = 0.99, .proposals = 8192, .bfmi = 0.06};
  const auto judged = [&f](Subject subject = Subject::q) { return Assessed{judge(f, {}, subject), f}; };
  EXPECT_TRUE(judged().says("BFMI 0.06, steps so small that 99.0 % are accepted: there may be places too narrow"));
  f.acceptance_aim = 0.98;  // as the user wanted
  EXPECT_TRUE(judged().says("BFMI 0.06: there may be places too narrow"));
  f.acceptance_aim = 0.8;
  f.steps = 8;
  EXPECT_FALSE(judged().says("non-centred"));
  f.steps = 256;
  EXPECT_TRUE(judged().says("Try a non-centred form"));
  EXPECT_FALSE(judged().says("--target-accept"));  // more of it cannot be had
  f.chains.acceptance = 0.85;
  EXPECT_TRUE(judged().says("BFMI 0.06: there may be places too narrow"));
  EXPECT_TRUE(judged().says("or --target-accept 0.95"));
  EXPECT_TRUE(judged(Subject::draws).says("Try a non-centred form"));
  EXPECT_FALSE(judged(Subject::draws).says("--target-accept"));  // hone check has no such flag
  f.chains.bfmi = 0.9;
  EXPECT_FALSE(judged().says("non-centred"));
  f.chains.divergences = 4000;
  EXPECT_TRUE(judged().says("diverged: there are places too narrow"));
  f.chains.bfmi = 0.06;
  EXPECT_FALSE(judged().says("as in a funnel"));  // once is enough
  f.chains = {.nested_rhat = 1, .drift_limit = 4, .acceptance = 0.99, .proposals = 8192, .bfmi = 0.06};
  EXPECT_NE(judged().judgement.verdict, Verdict::trust_neither);
  EXPECT_FALSE(judged().says("non-centred"));
}

TEST(Verdict, SaysWhatImportanceWeightsAreWorth) {
  Findings f;
  f.dimension = 1;
  f.chains = {.nested_rhat = 1, .drift_limit = 4, .acceptance = 0.8, .proposals = 100, .bfmi = 1};
  f.coordinate_names = {"a"};
  const auto says = [&f](const std::string& part) { return Assessed{judge(f, {}), f}.says(part); };
  f.q.k_hat = -infinity;
  EXPECT_TRUE(says("weights of q's draws are nearly constant"));
  EXPECT_FALSE(says("inf"));
  f.q.k_hat = 0.27;
  EXPECT_TRUE(says("k-hat 0.27: importance-weighted expectations are reported too"));
  f.natural.tail_index = 1.1;  // as a Cauchy's
  f.natural.tail_name = "a";
  EXPECT_TRUE(says("k-hat 0.27: importance-weighted expectations are reported too")) << "q has the tail";
  f.q.sd_ratio = {0.5};
  EXPECT_TRUE(says("k-hat 0.27, but q's draws may not reach the heavy tail"));
  EXPECT_FALSE(says("are reported too"));
  f.q.k_hat = 0.8;
  EXPECT_TRUE(says("k-hat 0.80: importance weights of q's draws are of no use"));
}

// The verdict speaks of directions and tails only where these were examined.
TEST(Verdict, SaysWhatWasExamined) {
  Findings f;
  f.chains = {.nested_rhat = 1, .drift_limit = 4, .acceptance = 0.8, .proposals = 100, .bfmi = 1};
  const auto says = [&f](int dimension, const std::string& part) {
    f.dimension = dimension;
    f.q.narrowest.clear();
    if (dimension <= most_direction_dimensions) f.q.narrowest.push_back({{1.0}, 1.0});
    f.q.widest = f.q.narrowest;
    return Assessed{judge(f, {}), f}.says(part);
  };
  EXPECT_TRUE(says(300, "along every direction"));
  EXPECT_FALSE(says(300, "no directions across them"));
  EXPECT_FALSE(says(301, "along every direction"));
  EXPECT_TRUE(says(301, "no directions across them"));
  EXPECT_FALSE(says(1000, "heavy tail was not examined"));
  EXPECT_TRUE(says(1001, "heavy tail was not examined"));
}

// Where the budget ends before the chains have arrived, a part of them goes on for longer.
TEST(RefinedDraws, FewerChainsGoOnWhereTheBudgetEnds) {
  constexpr int d = 2;
  const Density narrow = [](std::span<const double> z, std::span<double> g) {  // correlation 0.999, which q ignores
    const double along = z[0] + z[1], across = z[0] - z[1];
    g[0] = -0.25 * along - 500 * across;
    g[1] = -0.25 * along + 500 * across;
    return -0.125 * along * along - 250 * across * across;
  };
  const DensityTarget target(d, narrow);
  const GaussianFamily q(d, Covariance::full);
  SuperStarts starts{Matrix<double>(d, 8), std::vector<int>(8, 0)};
  for (int k = 0; k < 8; ++k) starts.z(0, k) = starts.z(1, k) = 0.5 * (k - 3.5);
  RefinedConfig config;
  config.kernel = std::make_shared<Hmc>(HmcConfig{2, 1});
  config.step_size = 0.03;  // a hundred steps per draw
  config.gradients = 100'000;
  const RefinedDraws fewer = refine_draws(target, q, starts, config);
  config.least_per_start = config.chains_per_start;
  const RefinedDraws all = refine_draws(target, q, starts, config);
  EXPECT_EQ(all.states.chains, 256);
  EXPECT_EQ(all.chains_per_start, 16);
  EXPECT_EQ(fewer.states.chains, 16 * fewer.chains_per_start);
  EXPECT_LT(fewer.chains_per_start, 16);
  EXPECT_EQ(fewer.checks.chains, fewer.states.chains);
  EXPECT_EQ(fewer.checks.chains_begun, 256);
  EXPECT_EQ(all.checks.chains, 256);
  EXPECT_GE(fewer.steps, 4 * all.steps);
  EXPECT_EQ(fewer.zt.cols(), 8 * fewer.chains_per_start);
  EXPECT_EQ(fewer.super_ends.cols(), 8 * fewer.chains_per_start);
  EXPECT_EQ(fewer.before.chains, fewer.states.chains);
  std::vector<double> values;
  for (int i = 0; i < fewer.states.count(); ++i) values.push_back(fewer.states.z(0, i) + fewer.states.z(1, i));
  const Estimate mean = mean_over_chains(values, fewer.states.chains);
  EXPECT_NEAR(mean.mean, 0, 4 * mean.se);
  double worst = 0;
  DensityTarget again(d, narrow);
  std::vector<double> value(1), slope(d);
  for (int i = 0; i < fewer.states.count(); i += 97) {
    again.evaluate(fewer.states.z.view().columns(i, i + 1), Want::both, value, {slope.data(), d, 1});
    worst = std::max(worst, std::abs(value[0] - fewer.states.log_p[static_cast<std::size_t>(i)]));
  }
  EXPECT_EQ(worst, 0);  // points and values stay together
}

TEST(RefinedDraws, SameBitsForOneAndTwoThreads) {
  Plan plan{3, 0.1, 0.9, quick(200)};
  const DensityTarget target(3, Density(standard_normal));
  GaussianFamily q(3, Covariance::full);
  SuperStarts starts{Matrix<double>(3, 8), std::vector<int>(8, 0)};
  PhiloxSource(9).normals({Purpose::start}, starts.z.view().flat());
  plan.config.threads = 1;
  const RefinedDraws one = refine_draws(target, q, starts, plan.config);
  plan.config.threads = 2;
  const RefinedDraws two = refine_draws(target, q, starts, plan.config);
  EXPECT_EQ(one.states.log_p, two.states.log_p);
  EXPECT_EQ(one.log_pt, two.log_pt);
  EXPECT_EQ(one.checks.nested_rhat, two.checks.nested_rhat);
}

// Two super-chains of two chains with two states, by hand: B = 8, chance 1, W = 4.
TEST(ValueRhats, AreNestedRhatsWithoutChance) {
  ChainStates states(1, 4, 2);
  Matrix<double> values(2, 8);
  const double first[] = {0, 2, 2, 4, 4, 6, 6, 8};
  for (int i = 0; i < 8; ++i) {
    values(0, i) = first[i];
    values(1, i) = i == 3 ? std::nan("") : 1;
  }
  const std::vector<double> rhats = value_rhats(values, states, 2);
  EXPECT_NEAR(rhats[0], std::sqrt(1 + 7.0 / 4), 1e-12);
  EXPECT_TRUE(std::isnan(rhats[1]));
  EXPECT_TRUE(std::isnan(value_rhats(values, states, 4)[0]));  // one super-chain
}

}  // namespace
}  // namespace hone
