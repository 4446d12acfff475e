#include "app/run/second_opinion.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "app/run/drawn_law.hpp"
#include "app/run/draws_file.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/random.hpp"
#include "hone/base/scalar.hpp"
#include "hone/target/density.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

// Draws z = m + L e of a Gaussian in two dimensions, and log q but for a constant.
struct TwoNormals {
  Matrix<double> z{2, 400};
  std::vector<double> log_q;

  explicit TwoNormals(double below) {
    Matrix<double> e(2, 400);
    const PhiloxSource random(3);
    for (int i = 0; i < 400; ++i) {
      random.normals({Purpose::draw, 1, static_cast<std::uint32_t>(i)}, e.column(i));
      z(0, i) = 3 + 2 * e(0, i);
      z(1, i) = -5 + below * e(0, i) + 0.1 * e(1, i);
      log_q.push_back(-0.5 * (square(e(0, i)) + square(e(1, i))));
    }
  }
  double at(double a, double b, double below) const {
    const double e0 = (a - 3) / 2, e1 = (b + 5 - below * e0) / 0.1;
    return -0.5 * (square(e0) + square(e1));
  }
};

TEST(DrawnLaw, AGaussianIsFoundFromItsValues) {
  for (const double below : {0.0, 0.7}) {  // independent coordinates, and correlated ones
    const TwoNormals normals(below);
    const auto found = gaussian_through(normals.z, normals.log_q);
    ASSERT_TRUE(found.has_value()) << below;
    for (const auto& [a, b] : {std::pair{3.0, -5.0}, {9.0, -3.0}, {-2.0, -6.5}})
      EXPECT_NEAR((*found)(std::vector{a, b}), normals.at(a, b, below),
                  1e-7 * std::abs(normals.at(a, b, below)) + 1e-9);
  }
}

TEST(DrawnLaw, AnotherLawOrTooFewDrawsAreNotTakenForAGaussian) {
  TwoNormals normals(0.7);
  const auto first = [&](int n) {
    return gaussian_through(normals.z.view().columns(0, n),
                            std::span(normals.log_q).first(static_cast<std::size_t>(n)));
  };
  EXPECT_TRUE(first(12).has_value());
  EXPECT_FALSE(first(11).has_value());                            // six coefficients
  for (double& x : normals.log_q) x = std::round(x * 1e4) / 1e4;  // as in a text file
  EXPECT_TRUE(first(400).has_value());
  for (std::size_t i = 0; i < normals.log_q.size(); ++i)
    normals.log_q[i] += 0.1 * std::sin(normals.z(0, static_cast<int>(i)));
  EXPECT_FALSE(first(400).has_value());
}

class DrawFiles : public testing::Test {
 protected:
  GivenDraws read(const std::string& text) const {
    write_file(folder.path() / "draws.csv", text);
    return read_csv_draws({folder.path() / "draws.csv"});
  }
  std::string refused(const std::string& text) const {
    try {
      read(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  test::TemporaryFolder folder;
};

TEST_F(DrawFiles, NamesOfOtherTools) {
  const GivenDraws draws = read("\"mu\",\"theta[1]\",\"K[2,3]\", x \r\n1,2,3,4\r\n\r\n+5,6e0,-7,nan\r\n");
  EXPECT_EQ(draws.names, (std::vector<std::string>{"mu", "theta.1", "K.2.3", "x"}));
  ASSERT_EQ(draws.values.cols(), 2);
  EXPECT_EQ(draws.values(0, 1), 5);
  EXPECT_EQ(draws.values(2, 1), -7);
  EXPECT_TRUE(std::isnan(draws.values(3, 1)));
  EXPECT_TRUE(draws.log_q.empty());
  EXPECT_EQ(stan_name("a]"), "a]");
}

TEST_F(DrawFiles, RowsThatAreNoDrawsAreLeftOut) {
  const std::string warm = "#     num_warmup = 3\n#     save_warmup = 1\n#     thin = 2\n";
  EXPECT_EQ(read(warm + "lp__,mu\n0,1\n0,2\n# Adaptation terminated\n0,3\n").values(1, 0), 3);
  EXPECT_EQ(read("#     save_warmup = 0 (Default)\nlp__,mu\n0,1\n0,3\n").values.cols(), 2);
  const GivenDraws advi = read("# method = variational\nlp__,log_p__,log_g__,mu\n0,0,0,9\n0,-1,-2,1\n0,-1,-3,2\n");
  EXPECT_EQ(advi.values.cols(), 2);
  EXPECT_EQ(advi.log_q, (std::vector<double>{-2, -3}));
}

TEST_F(DrawFiles, LogQIsThatOfTheDrawsOrNone) {
  EXPECT_EQ(read("log_p__,log_q__,mu\n1,2,3\n").log_q, std::vector<double>{2});
  EXPECT_EQ(read("lp_approx__,lp__,mu\n1,2,3\n").log_q, std::vector<double>{1});
  EXPECT_TRUE(read("# psis_resample = 1 (Default)\nlp_approx__,lp__,mu\n1,2,3\n").log_q.empty());
  EXPECT_TRUE(read("# draws of q refined by 8 HMC steps each\nlog_q__,mu\n1,2\n").log_q.empty());
  const std::string own = "# refined draws: states of 256 chains up to step 32, chain after chain\n";  // hone fit's
  EXPECT_TRUE(read(own + "log_q__,mu\n1,2\n").log_q.empty());
}

TEST_F(DrawFiles, DamageIsNamedByLine) {
  EXPECT_NE(refused("mu,tau\n1,2\n3\n").find("draws.csv:3: 1 values for 2 names"), std::string::npos);
  EXPECT_NE(refused("# a\nmu\nx\n").find("draws.csv:3: 'x' of mu is not a number"), std::string::npos);
  EXPECT_NE(refused("mu,tau\n").find("has no draws"), std::string::npos);
  EXPECT_NE(refused("").find("has no draws"), std::string::npos);
  write_file(folder.path() / "other.csv", "nu\n1\n");
  write_file(folder.path() / "draws.csv", "mu\n1\n");
  EXPECT_THROW(read_csv_draws({folder.path() / "draws.csv", folder.path() / "other.csv"}), InputError);
}

// Few exact draws in many dimensions: the widest of 20 directions looks 1.3 to 1.5 times as wide by chance.
TEST(SecondOpinion, FewExactDrawsAreOfUse) {
  constexpr int d = 20;
  std::vector<std::string> names;
  for (int k = 0; k < d; ++k) names.push_back("x" + std::to_string(k));
  const auto posterior = make_posterior(
      [](std::span<const double> z, std::span<double> gradient) {
        double value = 0;
        for (std::size_t k = 0; k < z.size(); ++k) {
          gradient[k] = -z[k];
          value -= 0.5 * square(z[k]);
        }
        return value;
      },
      names);
  const PhiloxSource random(8);
  for (const int n : {100, 200, 400}) {
    Matrix<double> z(d, n);
    for (int i = 0; i < n; ++i) random.normals({Purpose::draw, 1, static_cast<std::uint32_t>(i)}, z.column(i));
    const SecondOpinion exact = second_opinion(*posterior, z, {}, {}, {});
    EXPECT_EQ(exact.judgement.verdict, Verdict::use_q)
        << n << ": " << (exact.judgement.reasons.empty() ? "" : exact.judgement.reasons[0]);
    EXPECT_TRUE(std::isnan(exact.findings.q.p_value)) << "the draws set the Gaussian that the test would be about";
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < d; ++k) z(k, i) *= 0.5;
    EXPECT_NE(second_opinion(*posterior, z, {}, {}, {}).judgement.verdict, Verdict::use_q) << n;
  }
}

// Two coordinates, normal and correlated, and a generated quantity that is not finite beyond a limit of the first.
auto with_a_gap(double limit) {
  return make_posterior(
      [](std::span<const double> z, std::span<double> gradient) {
        const double off = z[1] - 0.8 * z[0];
        gradient[0] = -z[0] + 0.8 * off / 0.36;
        gradient[1] = -off / 0.36;
        return -0.5 * (square(z[0]) + square(off) / 0.36);
      },
      std::vector<std::string>{"a", "b"}, std::vector<std::string>{"a", "b", "gap"},
      [limit](std::span<const double> z, std::span<double> x) {
        x[0] = z[0];
        x[1] = z[1];
        x[2] = z[0] > limit ? std::nan("") : 1 / (1 + square(z[1]));
      },
      2);
}

// Draws of it, b shifted.
Matrix<double> draws_of_it(double shift) {
  Matrix<double> z(2, 500);
  const PhiloxSource random(12);
  for (int i = 0; i < z.cols(); ++i) {
    random.normals({Purpose::draw, 1, static_cast<std::uint32_t>(i)}, z.column(i));
    z(1, i) = 0.8 * z(0, i) + 0.6 * z(1, i) + shift;
  }
  return z;
}

bool notes_say(const SecondOpinion& opinion, const std::string& part) {
  return std::ranges::any_of(opinion.judgement.notes,
                             [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

TEST(SecondOpinion, ValuesThatAreNotFiniteAreNamed) {
  const SecondOpinion some = second_opinion(*with_a_gap(1.5), draws_of_it(0), {}, {}, {});
  EXPECT_TRUE(std::isnan(some.rows[2].mean));
  EXPECT_EQ(some.judgement.verdict, Verdict::use_q) << some.judgement.reasons[0];
  EXPECT_TRUE(notes_say(some, "values that are not finite: gap (at ")) << some.judgement.notes.back();
  EXPECT_TRUE(notes_say(some, " % of the refined draws). The table has no figures for them"));
  const SecondOpinion none = second_opinion(*with_a_gap(100), draws_of_it(0), {}, {}, {});
  EXPECT_TRUE(std::isfinite(none.rows[2].mean));
  EXPECT_FALSE(notes_say(none, "not finite"));
  Matrix<double> far = draws_of_it(0);
  far(0, 17) = 8;  // which no chain reaches
  const SecondOpinion given = second_opinion(*with_a_gap(7.9), far, {}, {}, {});
  EXPECT_TRUE(std::isfinite(given.rows[2].mean));
  EXPECT_TRUE(std::isnan(given.rows[2].given_mean));
  EXPECT_TRUE(notes_say(given, "values that are not finite: gap (at 0.2 % of the given draws)"));
}

TEST(SecondOpinion, NamesOfTheOtherScaleAreTakenForThat) {
  const auto posterior = make_posterior(
      [](std::span<const double> z, std::span<double> gradient) {
        for (std::size_t k = 0; k < 2; ++k) gradient[k] = -z[k];
        return -0.5 * (square(z[0]) + square(z[1]));
      },
      std::vector<std::string>{"log s", "b"}, std::vector<std::string>{"s", "b"},
      [](std::span<const double> z, std::span<double> x) {
        x[0] = std::exp(z[0]);
        x[1] = z[1];
      },
      2);
  const auto error = [&](const std::vector<std::string>& names, Scale scale) {
    GivenDraws draws;
    draws.names = names;
    draws.values = Matrix<double>(2, 3);
    try {
      coordinates_of(*posterior, draws, scale, "d.csv");
    } catch (const InputError& wrong) {
      return std::string(wrong.what());
    }
    return std::string();
  };
  EXPECT_TRUE(error({"log s", "b"}, Scale::natural)
                  .ends_with("found log s, b; these are the names on the unconstrained scale: --scale unconstrained"));
  EXPECT_TRUE(
      error({"s", "b"}, Scale::unconstrained).ends_with("these are the names on the natural scale: --scale natural"));
  EXPECT_TRUE(
      error({"c", "b"}, Scale::natural).ends_with("'s' is missing; expected every parameter of the model, found c, b"));
  EXPECT_EQ(error({"log s", "b"}, Scale::unconstrained), "");
}

TEST(SecondOpinion, SameBitsForOneTwoAndThreeThreads) {
  const auto posterior = with_a_gap(1.5);
  CheckedFitConfig config;
  const SecondOpinion one = second_opinion(*posterior, draws_of_it(0.5), {}, config, {});
  for (const int threads : {2, 3}) {
    config.fit.threads = threads;
    const SecondOpinion more = second_opinion(*posterior, draws_of_it(0.5), {}, config, {});
    EXPECT_EQ(opinion_json(one, config.tolerances), opinion_json(more, config.tolerances)) << threads;
    EXPECT_TRUE(std::ranges::equal(one.z.view().flat(), more.z.view().flat())) << threads;
    EXPECT_EQ(one.log_p, more.log_p) << threads;
    EXPECT_EQ(one.gradients, more.gradients) << threads;
  }
}

}  // namespace
}  // namespace hone
