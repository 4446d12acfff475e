#include "app/run/fit_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "app/run/fit_groups.hpp"
#include "app/run/loo.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/random.hpp"
#include "hone/base/scalar.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

using Names = std::vector<std::string>;

TEST(FitGroups, FollowTheRules) {
  const test::TemporaryFolder folder;
  write_file(
      folder.path() / "m.stan",
      "data { int N; vector[N] x; vector[N] z; vector[N] w; vector[N] y; array[N] int n; }\n"
      "model { // x ~ normal(0, 1)\n z[1:N] ~ normal(mu, 1); target += poisson_lupmf(n | exp(x)); /* w ~ a */ }\n");
  const Names names = {"mu",      "theta_tilde.1", "theta_tilde.2", "mu_hat",    "y_rep.1",   "y_rep.2",
                       "x_hat.1", "q_pred",        "log_lik.1",     "log_lik.2", "z_log_lik", "log_likely"};
  const Names data = {"N", "x", "z", "w", "y", "n"};
  const FitGroups groups = fit_groups(names, data, folder.path() / "m.stan");
  EXPECT_EQ(groups.log_likelihood, (Names{"log_lik", "z_log_lik"}));
  EXPECT_EQ(groups.posterior_predictive, (Names{"y_rep", "x_hat", "q_pred"}));
  EXPECT_EQ(groups.observed_data, (Names{"x", "z", "y", "n"}));  // x by x_hat, z and n by the program, y by y_rep
  EXPECT_EQ(fit_groups(names, data, "gone.stan").observed_data, (Names{"x", "y"}));
  EXPECT_TRUE(fit_groups({}, {}, "model.so").observed_data.empty());
  EXPECT_EQ(groups.integers, (Names{"N", "n"}));
}

TEST(FitGroups, KnowWhatIsDeclaredInt) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "m.stan",
             "functions { real f(int x, real z) { return x; } }\n"
             "data { int<lower=0, upper=9> a, b; int c[2]; array[3] int<lower=0> d; real e; array[2] real print; }\n"
             "generated quantities { array[3] int d_rep; int g = 3; real e_rep; // int e;\n }\n");
  const Names names = {"d_rep.1", "d_rep.2", "d_rep.3", "e_rep", "g"}, data = {"a", "b", "c", "d", "e", "x", "print"};
  EXPECT_EQ(fit_groups(names, data, folder.path() / "m.stan").integers, (Names{"d_rep", "g", "a", "b", "c", "d"}));
}

Json summary_of(const Names& names, std::size_t parameters) {
  Json summary = {{"parameter_count", parameters}, {"groups", {{"log_likelihood", {"log_lik"}}}}};
  for (const std::string& name : names)
    summary["parameters"][name] = {{"q_mean", -0.00123456}, {"q_sd", 1234567.0}, {"mean", 1.25},   {"sd", 0.5},
                                   {"mcse", nullptr},       {"q05", -1e-9},      {"q50", 0.0},     {"q95", 12.3456},
                                   {"ess", 3588.2},         {"ess_tail", 1.0},   {"rhat", 1.00049}};
  return summary;
}

Names lines_of(const std::string& text) {
  Names lines;
  for (std::size_t at = 0, end; at < text.size(); at = end + 1)
    lines.push_back(text.substr(at, (end = text.find('\n', at)) - at));
  return lines;
}

TEST(FitTable, HidesLongVectorsAndShowsWhatIsAskedFor) {
  Names names = {"mu", "tau"};
  for (int i = 1; i <= 25; ++i) names.push_back("theta." + std::to_string(i));
  names.insert(names.end(), {"log_lik.1", "log_lik.2", "double_mu"});
  const Json summary = summary_of(names, 27);
  const FitTable usual = fit_table(summary);
  ASSERT_EQ(usual.lines.size(), 5u);
  EXPECT_EQ(usual.lines[2].name, "theta[1..25]: 25 values, --show theta");
  EXPECT_EQ(usual.lines[3].name, "log_lik[1..2]: 2 values, --show log_lik");
  EXPECT_FALSE(usual.lines[4].parameter);
  const FitTable asked = fit_table(summary, {.names = {"log_lik", "theta[3]", "theta.3", "mu"}});
  ASSERT_EQ(asked.lines.size(), 4u);
  EXPECT_EQ(asked.lines[2].name, "theta.3");
  try {
    check_shown(names, {.names = {"taus"}});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "--show taus: the model has no value of this name; did you mean 'tau'?");
  }
}

TEST(FitTable, IsNoWiderThanTheTerminal) {
  const FitTable table =
      fit_table(summary_of({"mu", "a_long_name_of_a_parameter.1", "a_long_name_of_a_parameter.2"}, 1));
  for (const int width : {200, 100, 80, 60, 50}) {
    const Names lines = lines_of(text_of(table, width));
    for (const std::string& line : lines) EXPECT_LE(width_of(line), width) << line;
    EXPECT_NE(lines[0].find("R-hat"), std::string::npos) << width;
    EXPECT_EQ(lines[0].find("50%") != std::string::npos, width == 200) << width;
    EXPECT_EQ(lines[0].find("q sd") != std::string::npos, width >= 100) << width;
  }
  const std::string wide = text_of(table, 200);
  EXPECT_NE(wide.find(" -0.0012 1.2e+06 |    1.25     0.5       -  -1e-09       0   12.35  3588 1.000"),
            std::string::npos)
      << wide;
}

TEST(Wrapped, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(wrapped("- ", "one two three", 9), "- one two\n  three\n");
  EXPECT_EQ(wrapped("", "unbreakable", 4), "unbreakable\n");
  EXPECT_EQ(wrapped("", "", 10), "\n");
  EXPECT_EQ(fitted_help("Options:\n  --a N  one two three\n  --b    four\n", 16),
            "Options:\n  --a N  one two\n         three\n  --b    four\n");
  EXPECT_EQ(fitted_help("    one two three", 11), "    one two\n    three\n");
  EXPECT_EQ(cut_to("R̂ of µ", 4), "R̂ …");
  EXPECT_EQ(cut_to("short", 5), "short");
}

// y_i ~ N(μ, 1) with a flat prior: μ given all but one is N(mean of the others, 1/(n − 1)).
TEST(Loo, AgreesWithTheClosedFormOfANormalMean) {
  constexpr int n = 12, draws = 20000;
  std::vector<double> y(n), noise(draws);
  PhiloxSource(3).normals({Purpose::start}, y);
  PhiloxSource(4).normals({Purpose::start}, noise);
  double sum = 0, exact = 0, squares = 0;
  for (const double x : y) sum += x;
  Matrix<double> log_lik(n, draws);
  std::vector<double> each;
  for (int i = 0; i < n; ++i) {
    for (int s = 0; s < draws; ++s)
      log_lik(i, s) = -0.5 * square(y[i] - sum / n - noise[s] / std::sqrt(n)) - 0.5 * std::log(2 * std::numbers::pi);
    const double variance = 1 + 1.0 / (n - 1);
    each.push_back(-0.5 * square(y[i] - (sum - y[i]) / (n - 1)) / variance -
                   0.5 * std::log(2 * std::numbers::pi * variance));
    exact += each.back();
  }
  for (const double x : each) squares += square(x - exact / n);
  const Loo loo = loo_of(log_lik);
  EXPECT_NEAR(loo.total, exact, 0.01);
  EXPECT_NEAR(loo.se, std::sqrt(squares * n / (n - 1)), 0.01);
  EXPECT_NEAR(loo.effective, 1, 0.4);  // one parameter
  EXPECT_EQ(loo.bad(), 0);
  EXPECT_DOUBLE_EQ(difference(loo, loo).value, 0);
  Loo worse = loo;
  for (int i = 0; i < n; ++i) worse.elpd[i] -= i;
  EXPECT_NEAR(difference(loo, worse).value, n * (n - 1) / 2.0, 1e-9);
  EXPECT_NEAR(difference(loo, worse).se, std::sqrt(n * n * (n + 1.0) / 12), 1e-9);  // of 0, …, n − 1
  log_lik(2, 7) = std::nan("");
  EXPECT_THROW(loo_of(log_lik), InputError);
}

}  // namespace
}  // namespace hone
