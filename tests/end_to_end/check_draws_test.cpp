// `hone check --draws` as a user runs it, on a library with BridgeStan's interface: mu ~ N(0, 1), tau ~ Exponential(1).
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "hone/base/random.hpp"
#include "hone/base/scalar.hpp"
#include "tests/end_to_end/program.hpp"

namespace hone::test {
namespace {

using Json = nlohmann::json;

class CheckDraws : public Program {
 protected:
  const std::string model = HONE_FAKES "/libfake_threads.so";
  const std::string common = "check --quiet --threads 2 --model " + model + " --draws ";

  // Draws of the posterior, mu shifted and tau multiplied.
  void write_draws(const std::string& name, double shift, std::uint32_t number = 800, double factor = 1) const {
    std::string text = "mu,tau,other\n";
    const PhiloxSource random(7);
    std::vector<double> u(1), e(1);
    for (std::uint32_t i = 0; i < number; ++i) {
      random.uniforms({Purpose::draw, 1, i}, u);
      random.normals({Purpose::draw, 2, i}, e);
      text += std::to_string(e[0] + shift) + "," + std::to_string(-factor * std::log(u[0]) + 1e-6) + ",1\n";
    }
    write_file(folder.path() / name, text);
  }
  // Draws of N(0, 1) for mu and N(−0.5, 1) for log tau, with their log density, as ADVI writes them.
  void write_normal(const std::string& name) const {
    std::string text = "# method = variational\nlp__,log_p__,log_g__,mu,tau\n0,0,0,0,1\n";
    const PhiloxSource random(8);
    std::vector<double> e(2);
    for (std::uint32_t i = 0; i < 1000; ++i) {
      random.normals({Purpose::draw, 1, i}, e);
      text += "0,0," + std::to_string(-0.5 * (square(e[0]) + square(e[1]))) + "," + std::to_string(e[0]) + "," +
              std::to_string(std::exp(e[1] - 0.5)) + "\n";
    }
    write_file(folder.path() / name, text);
  }
};

TEST_F(CheckDraws, GoodDrawsPassAndShiftedOnesAreRepaired) {
  write_draws("good.csv", 0);
  write_draws("bad.csv", 0.5);
  const Outcome good = hone(common + "good.csv --json");
  ASSERT_EQ(good.code, 0) << good.err << good.out;
  EXPECT_EQ(Json::parse(good.out)["verdict"], "use-draws");
  EXPECT_TRUE(Json::parse(good.out)["checks"]["k_hat"].is_null());  // nobody said what they were drawn from

  const Outcome bad = hone(common + "bad.csv --out repaired");
  EXPECT_EQ(bad.code, 10) << bad.err;
  EXPECT_NE(bad.out.find("verdict: use-refined"), std::string::npos) << bad.out;
  EXPECT_NE(bad.out.find("the draws' mean of mu is off by 0."), std::string::npos) << bad.out;
  const Json judged = Json::parse(read_file(folder.path() / "repaired" / "check.json"));
  EXPECT_NEAR(judged["parameters"]["mu"]["mean"], 0, 4 / std::sqrt(800.0));
  EXPECT_NEAR(judged["parameters"]["mu"]["given_mean"], 0.5, 4 / std::sqrt(800.0));
  EXPECT_EQ(hone(common + "repaired/draws.csv").code, 0);
  EXPECT_EQ(hone(common + "repaired/draws_unconstrained.csv --scale unconstrained").code, 0);
}

TEST_F(CheckDraws, SpeaksOfTheNaturalScaleFirstAndRunsNoMoreChainsThanAFit) {
  write_draws("narrow.csv", 0, 3000, 0.6);
  const Outcome narrow = hone(common + "narrow.csv --show tau --out repaired");
  EXPECT_EQ(narrow.code, 10) << narrow.err << narrow.out;
  EXPECT_NE(narrow.out.find("verdict: use-refined\n  - the draws' mean of tau is off by 0."), std::string::npos)
      << narrow.out;
  EXPECT_NE(narrow.out.find("the draws' sd of tau is 0."), std::string::npos) << narrow.out;
  EXPECT_NE(narrow.out.find("\ntau "), std::string::npos) << narrow.out;
  EXPECT_EQ(narrow.out.find("\nmu "), std::string::npos) << narrow.out;
  const Json judged = Json::parse(read_file(folder.path() / "repaired" / "check.json"));
  EXPECT_EQ(judged["chains_from_draws"], 128);
  EXPECT_NEAR(judged["parameters"]["tau"]["mean"], 1, 4 * judged["parameters"]["tau"]["mcse"].get<double>());
  EXPECT_NEAR(judged["parameters"]["tau"]["sd"], 1, 0.1);
  EXPECT_NEAR(judged["parameters"]["tau"]["given_mean"], 0.6, 4 * 0.6 / std::sqrt(3000.0));
  EXPECT_NE(hone(common + "narrow.csv --show sigma").err.find("--show sigma: the model has no value of this name"),
            std::string::npos);
}

TEST_F(CheckDraws, SaysHowFarItIsAndHowManyDrawsItTook) {
  write_draws("many.csv", 0, 9000);
  const Outcome many = hone("check --threads 2 --model " + model + " --draws many.csv --budget 3s");
  ASSERT_NE(many.code, 2) << many.err;  // which verdict depends on the machine
  EXPECT_NE(many.out.find("note: of 9000 draws 3000 were checked"), std::string::npos) << many.out;
  EXPECT_NE(many.err.find(" seconds"), std::string::npos) << many.err;
  EXPECT_NE(many.err.find("check  100 %"), std::string::npos) << many.err;
}

// KL(q ‖ p) + KL(p ‖ q) is what the VCD tends to. q is N(−0.5, 1) for y = log tau, p ∝ exp(y − e^y), and mu has its own
// law. With γ Euler's constant, E_p y = −γ, E_p y² = γ² + π²/6, E_q e^y = 1:
// E_q (log q − log p) − E_p (log q − log p) = (−½ + 0.5 + 1) − (−½ (π²/6 + (0.5 − γ)²) + γ + 1).
TEST_F(CheckDraws, ADensityOfTheDrawsGivesVcdAndKHat) {
  write_normal("advi.csv");
  const Outcome outcome = hone(common + "advi.csv --json --steps 32");
  ASSERT_TRUE(outcome.code == 10 || outcome.code == 0) << outcome.err;
  const Json checks = Json::parse(outcome.out)["checks"];
  const double gamma = 0.57721566490153286, pi = 3.14159265358979324;
  const double exact = (-0.5 + 0.5 + 1) - (-0.5 * (pi * pi / 6 + square(0.5 - gamma)) + gamma + 1);
  const Json last = checks["pairs"].back(), limit = checks["vcd"];
  EXPECT_NEAR(last["vcd"], exact, 4 * last["se"].get<double>()) << exact;
  EXPECT_NEAR(limit["mean"], exact, 4 * limit["se"].get<double>()) << exact;
  EXPECT_LT(limit["se"], last["se"]);
  EXPECT_GT(checks["k_hat"], 0.7);  // on the left, the posterior's tail is e^y
}

TEST_F(CheckDraws, BadInputIsRefusedByName) {
  expect_refused("check", "--model and --draws");
  expect_refused("check --draws x.csv", "--model");
  expect_refused("check run --draws x.csv --model " + model, "--draws: a run has its own");
  expect_refused("check run --steps 4", "--steps");
  expect_refused("check run --out there", "--out");
  expect_refused("check run --show mu", "--show: is for --draws; 'hone summary RUN' shows the table");
  expect_refused(common + "nothing.csv", "nothing.csv: there is no such file");
  expect_refused("check --draws x.csv --scale log --model " + model, "--scale");
  const auto refused = [this](const std::string& text, const std::string& part) {
    write_file(folder.path() / "d.csv", text);
    const Outcome outcome = hone(common + "d.csv --out there");
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "there"));
  };
  refused("mu,nu\n1,2\n", "d.csv: 'tau' is missing; expected every parameter of the model, found mu, nu");
  refused("mu,tau\n1,-2\n", "d.csv: draw 1: tau is not positive");
  refused("mu,tau\n1,-2\n", "on the unconstrained scale: --scale unconstrained");
  refused("mu,tau\n1,2\ninf,2\n", "d.csv: draw 2: mu is inf");
  refused("mu,tau\n1,2\n", "1 are too few; expected at least 100");
  write_file(folder.path() / "d.nc", "no NetCDF");
  EXPECT_NE(hone(common + "d.nc").err.find("d.nc: cannot be read as NetCDF"), std::string::npos);
}

}  // namespace
}  // namespace hone::test
