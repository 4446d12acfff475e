// Posteriors with known answers: the refined draws against the reference.
#include "tests/support/posteriors.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/scalar.hpp"
#include "hone/fit/checked_fit.hpp"

namespace hone::test {
namespace {

class Posteriors : public testing::TestWithParam<const char*> {};

CheckedFit fit(const std::string& program) {
  CheckedFitConfig config;
  if (program == "low_dim_gauss_mix") {  // 0.1 ms per gradient
    config.draws = 1000;
    config.fit.budget.gradients = 400'000;
  }
  return fit_and_check(*make_known(program), config);
}

// First and second moments within four standard errors, ours and the reference's together; sds within 7 %, and three
// standard errors, so that the errors are meaningful.
TEST_P(Posteriors, RefinedDrawsHaveTheReferenceMoments) {
  const CheckedFit checked = fit(GetParam());
  EXPECT_NE(checked.judgement.verdict, Verdict::trust_neither);
  const KnownPosterior* known = nullptr;
  for (const KnownPosterior& k : known_posteriors())
    if (k.program == GetParam()) known = &k;
  ASSERT_NE(known, nullptr);
  int compared = 0;
  const ChainStates& states = checked.refined.states;
  for (const auto& [name, r] : reference_moments(*known)) {
    for (std::size_t k = 0; k < checked.parameters.size(); ++k) {
      const ParameterSummary& s = checked.parameters[k];
      if (s.name != name) continue;
      ++compared;
      EXPECT_NEAR(s.mean, r.mean, 4 * std::hypot(s.mcse, r.mcse_mean)) << name;
      EXPECT_LT(s.mcse, 0.035 * r.sd) << name;
      std::vector<double> squares;
      Moments fourth;
      for (int i = 0; i < states.count(); ++i) {
        const double x = checked.natural_refined(static_cast<int>(k), i);
        squares.push_back(x * x);
        fourth.add(square(square((x - s.mean) / s.sd)));
      }
      const Estimate square_mean = mean_over_chains(squares, states.chains);
      EXPECT_NEAR(square_mean.mean, r.mean_sq, 4 * std::hypot(square_mean.se, r.mcse_mean_sq)) << name;
      const double sd_error = std::sqrt((fourth.mean() - 1) / (4.0 * s.effective));
      EXPECT_NEAR(s.sd / r.sd, 1, 0.07 + 3 * sd_error) << name;
    }
  }
  EXPECT_GT(compared, 2);
}

INSTANTIATE_TEST_SUITE_P(Known, Posteriors,
                         testing::Values("eight_schools_noncentered", "arK", "garch", "kidiq", "mesquite", "sblrc",
                                         "low_dim_gauss_mix", "gp_regr"),
                         [](const auto& known) { return std::string(known.param); });

TEST(Posteriors, OfTheCentredFunnelQIsNotToBeUsed) {
  CheckedFitConfig config;
  config.fit.budget.gradients = 1'000'000;
  for (const std::uint64_t seed : {1, 2, 3}) {
    config.fit.seed = seed;
    const CheckedFit checked = fit_and_check(*make_known("eight_schools_centered"), config);
    EXPECT_NE(checked.judgement.verdict, Verdict::use_q) << seed;
    for (const ParameterSummary& s : checked.parameters) EXPECT_TRUE(std::isfinite(s.mean)) << s.name;
  }
}

}  // namespace
}  // namespace hone::test
