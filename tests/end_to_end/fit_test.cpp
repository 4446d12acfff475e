// `hone fit` and `hone check` as a user runs them, on a library with BridgeStan's interface.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "hone/base/file.hpp"
#include "hone/fit/checked_fit.hpp"
#include "hone/target/density.hpp"
#include "tests/end_to_end/program.hpp"

namespace hone::test {
namespace {

using Json = nlohmann::json;

// How many searches the library makes on the density of libfake_threads.so.
int starts_in_the_library(std::int64_t gradients, int draws) {
  const auto density = [](std::span<const double> z, std::span<double> gradient) {
    if (z[0] > 5) throw std::domain_error("mu must not exceed 5");
    gradient[0] = -z[0];
    gradient[1] = 1 - std::exp(z[1]);
    return z[0] < -5 ? -INFINITY : -0.5 * z[0] * z[0] - std::exp(z[1]) + z[1];
  };
  CheckedFitConfig config;
  config.fit.budget.gradients = gradients;
  config.draws = draws;
  return fit_and_check(*make_posterior(density, {"mu", "log_tau"}), config).findings.starts;
}

class FitProgram : public Program {
 protected:
  const std::string model = HONE_FAKES "/libfake_threads.so";
  Json summary(const std::string& run) const { return Json::parse(read_file(folder.path() / run / "summary.json")); }
};

TEST_F(FitProgram, FitsWritesAndJudges) {
  const Outcome fit =
      hone("fit " + model + " --budget 300000 --draws 200 --threads 2 --quiet --out run --warm-start-out warm");
  ASSERT_EQ(fit.code, 0) << fit.err;
  for (const char* name : {"config.toml", "q.json", "draws_q.csv", "draws.csv", "draws_unconstrained.csv",
                           "inference_data.nc", "summary.json"})
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "run" / name)) << name;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "warm" / "metric.json"));

  const Json s = summary("run");
  for (const char* key : {"parameters", "dimension", "family", "objective", "gradient_evaluations", "seconds", "vcd",
                          "k_hat", "p_value", "verdict", "reasons"})
    EXPECT_TRUE(s.contains(key)) << key;
  for (const char* key : {"q_mean", "q_sd", "mean", "sd", "mcse", "q05", "q50", "q95"})
    EXPECT_TRUE(s["parameters"]["tau"].contains(key)) << key;
  EXPECT_TRUE(s["parameters"].contains("twice_tau"));
  EXPECT_EQ(s["dimension"], 2);
  EXPECT_EQ(s["family"], "gaussian-full");
  EXPECT_TRUE(s["vcd"]["1"].contains("se"));
  EXPECT_TRUE(s["vcd"].contains("8"));
  // mu ~ N(0, 1), tau ~ Exponential(1)
  EXPECT_NEAR(s["parameters"]["mu"]["mean"], 0, 4 / std::sqrt(200.0));
  EXPECT_NEAR(s["parameters"]["tau"]["mean"], 1, 4 / std::sqrt(200.0));
  EXPECT_NE(fit.out.find("verdict: "), std::string::npos);
  const int starts = starts_in_the_library(300000, 200);
  EXPECT_GE(starts, 16);  // eight from random points, eight wider ones, and those from shells
  EXPECT_NE(fit.out.find("in the region that " + std::to_string(starts) + " starts reached"), std::string::npos)
      << fit.out;

  const Outcome check = hone("check run --json");
  const Json judged = Json::parse(check.out);
  EXPECT_EQ(judged["verdict"], s["verdict"]);
  EXPECT_EQ(judged["reasons"], s["reasons"]);
  const std::string verdict = s["verdict"];
  EXPECT_EQ(check.code, verdict == "use-q" ? 0 : verdict == "use-refined" ? 10 : 11);
  // The log of an exponential variable is skewed: no Gaussian q passes a tiny tolerance, and any q passes a huge one.
  if (verdict != "trust-neither") {
    EXPECT_EQ(hone("check run --tolerance-vcd 1e-9").code, 10);
    EXPECT_EQ(hone("check run --tolerance-mean 1e9 --tolerance-sd 1e9 --tolerance-vcd 1e9").code, 0);
  }
}

TEST_F(FitProgram, ShowsWhatIsAskedForNowAndLater) {
  const std::string fast = " --budget 20000 --draws 100 --objective kl --quiet ";
  expect_refused("fit " + model + fast + "--show mu,tao --out run",
                 "--show tao: the model has no value of this name; did you mean 'tau'?");
  expect_refused("fit " + model + fast + "--show mu,,tau", "--show 'mu,,tau': expected names with commas between them");
  const Outcome fit = hone("fit " + model + fast + "--show twice_tau,mu --out run");
  ASSERT_EQ(fit.code, 0) << fit.err;
  EXPECT_NE(fit.out.find("\ntwice_tau "), std::string::npos) << fit.out;
  EXPECT_EQ(fit.out.find("\ntau "), std::string::npos) << fit.out;
  const Outcome again = hone("summary run --show twice_tau,mu");
  EXPECT_EQ(again.out, fit.out);
  for (std::size_t at = 0, end; at < fit.out.size(); at = end + 1)
    EXPECT_LE((end = fit.out.find('\n', at)) - at, 82u) << fit.out.substr(at, end - at);  // bytes; ± has two
  const std::string narrow = shell("COLUMNS=50 \"$HONE\" summary run --show mu").out;
  for (std::size_t at = 0, end; at < narrow.size(); at = end + 1)
    EXPECT_LE((end = narrow.find('\n', at)) - at, 52u) << narrow.substr(at, end - at);
  const Json rounds = summary("run")["checks"]["drifts"];
  ASSERT_GE(rounds.size(), 1u);
  EXPECT_EQ(rounds.back()["t"], summary("run")["steps"]);
  EXPECT_EQ(rounds.back()["drift"], summary("run")["checks"]["chains"]["drift"]);
  const Json all = Json::parse(hone("summary run --json").out),
             one = Json::parse(hone("summary run --json --show mu").out);
  EXPECT_EQ(all["parameters"], summary("run")["parameters"]);
  EXPECT_EQ(one["parameters"].size(), 1u);
  EXPECT_GT(one["parameters"]["mu"]["rhat"], 0.99);
  EXPECT_EQ(hone("summary nowhere").code, 2);
  EXPECT_EQ(hone("summary run --show nothing").code, 2);
}

TEST_F(FitProgram, ComparesRunsByTheirLogLikelihoods) {
  const auto write_run = [this](const std::string& name, double shift, int data) {
    std::string csv = "lp__,log_p__,log_q__,mu";
    for (int i = 1; i <= data; ++i) csv += ",log_lik." + std::to_string(i);
    csv += "\n";
    for (int s = 0; s < 200; ++s) {
      csv += "0,0,0,1";
      for (int i = 0; i < data; ++i) csv += "," + std::to_string(shift * i - 0.001 * ((s * 37 + i * 11) % 101));
      csv += "\n";
    }
    std::filesystem::create_directory(folder.path() / name);
    write_file(folder.path() / name / "draws.csv", csv);
    write_file(folder.path() / name / "summary.json", "{}");
  };
  write_run("worse", -0.5, 4);
  write_run("better", -0.25, 4);
  write_run("other", -0.5, 5);
  const Outcome outcome = hone("compare worse better");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LT(outcome.out.find("\nbetter "), outcome.out.find("\nworse ")) << outcome.out;
  const Json found = Json::parse(hone("compare worse better --json").out);
  EXPECT_EQ(found[0]["run"], "better");
  EXPECT_NEAR(found[1]["elpd_diff"], 1.5, 1e-6);  // 0.25 · (0 + 1 + 2 + 3)
  EXPECT_NEAR(found[1]["dse"], 0.25 * std::sqrt(4 * 5.0 / 3), 1e-6);
  EXPECT_NE(hone("compare worse other").err.find("only models of the same data can be compared"), std::string::npos);
  EXPECT_NE(hone("compare worse --log-lik ll").err.find("worse: the model has no variable 'll'"), std::string::npos);
  EXPECT_EQ(hone("compare nowhere").code, 2);
  const Outcome one = hone("compare worse better --log-lik mu");
  EXPECT_EQ(one.code, 2);
  EXPECT_NE(one.err.find("worse: 'mu' has one value; expected the log-likelihoods of at least two data"),
            std::string::npos)
      << one.err;
  EXPECT_EQ(outcome.out.find("trust-neither"), std::string::npos) << outcome.out;
  write_file(folder.path() / "worse" / "summary.json", R"({"verdict": "trust-neither"})");
  write_file(folder.path() / "better" / "summary.json", R"({"verdict": "use-q"})");
  const std::string warned = hone("compare worse better").out;
  EXPECT_NE(warned.find("\nwarning: worse: the verdict is trust-neither, so its elpd is not reliable"),
            std::string::npos)
      << warned;
  EXPECT_EQ(warned.find("warning: better"), std::string::npos) << warned;
  EXPECT_EQ(Json::parse(hone("compare worse better --json").out)[1]["verdict"], "trust-neither");
}

// Ctrl-C: before the searches end there is nothing, after them q and a verdict, with a first table on the way.
TEST_F(FitProgram, AnInterruptedFitKeepsWhatThereIs) {
  const std::string slow = "\"$HONE\" fit " HONE_FAKES "/libfake_slow.so --threads 2 --out run 2>err & pid=$!\n";
  const std::string wait = "until grep -q {} err; do sleep 0.02; done; kill -INT $pid; wait $pid";
  const auto until = [&](const std::string& text) {
    std::string script = wait;
    return slow + script.replace(script.find("{}"), 2, text);
  };
  const Outcome later = shell(until("preliminary"));
  const std::string told = read_file(folder.path() / "err");
  EXPECT_EQ(later.code, 130) << told;
  EXPECT_NE(later.out.find("verdict: trust-neither\n  - the fit was interrupted before its chains had run"),
            std::string::npos)
      << later.out;
  EXPECT_NE(told.find("run folder: run"), std::string::npos) << told;
  EXPECT_NE(told.find("100 %"), std::string::npos) << told;
  const Json s = summary("run");
  EXPECT_EQ(s["interrupted"], true);
  EXPECT_EQ(s["verdict"], "trust-neither");
  EXPECT_NEAR(s["parameters"]["mu"]["q_mean"], 0, 0.5);
  EXPECT_EQ(hone("report run").code, 0);
}

TEST_F(FitProgram, SameBitsForOneAndTwoThreads) {
  const std::string settings = " --budget 100000 --draws 100 --objective kl --quiet --out ";
  ASSERT_EQ(hone("fit " + model + settings + "one --threads 1").code, 0);
  ASSERT_EQ(hone("fit " + model + settings + "two --threads 2").code, 0);
  EXPECT_EQ(read_file(folder.path() / "one" / "draws.csv"), read_file(folder.path() / "two" / "draws.csv"));
  EXPECT_EQ(read_file(folder.path() / "one" / "q.json"), read_file(folder.path() / "two" / "q.json"));
}

TEST_F(FitProgram, EffortAndAcceptanceHaveTheirEffects) {
  const std::string common = "fit " + model + " --threads 2 --draws 100 --quiet --out ";
  ASSERT_EQ(hone(common + "quick --effort quick").code, 0);
  ASSERT_EQ(hone(common + "thorough --effort thorough --target-accept 0.95").code, 0);
  const Json quick = summary("quick"), thorough = summary("thorough");
  EXPECT_GT(thorough["gradient_evaluations"], 2 * quick["gradient_evaluations"].get<double>());
  EXPECT_NEAR(thorough["checks"]["chains"]["acceptance"], 0.95, 0.03);
  EXPECT_LT(quick["checks"]["chains"]["acceptance"], 0.92);
}

TEST_F(FitProgram, ItsConfigurationRunsItAgain) {
  const std::string settings = " --budget 100000 --draws 100 --objective kl --seed 4 --quiet --out ";
  ASSERT_EQ(hone("fit " + model + settings + "one").code, 0);
  const Outcome again =
      shell("mkdir elsewhere && cd elsewhere && \"$HONE\" fit --config ../one/config.toml --quiet --out ../two");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_file(folder.path() / "one" / "draws.csv"), read_file(folder.path() / "two" / "draws.csv"));
  EXPECT_EQ(read_file(folder.path() / "one" / "config.toml"), read_file(folder.path() / "two" / "config.toml"));
  EXPECT_EQ(hone("report one").code, 0);
  ASSERT_EQ(hone("fit --config one/config.toml --seed 5 --quiet --out three").code, 0);  // a flag overrides the file
  EXPECT_NE(read_file(folder.path() / "one" / "draws.csv"), read_file(folder.path() / "three" / "draws.csv"));
}

TEST_F(FitProgram, HabitsOfStansUsersAreAnswered) {
  expect_refused("fit " + model + " --output draws.csv",
                 "unknown argument '--output': hone writes a folder: --out DIR");
  expect_refused("fit " + model + " --chains=4", "--draws N says how many draws are kept");
  expect_refused("fit " + model + " --method nuts", "hone fit has one method");
  expect_refused("fit " + model + " --num_warmup 1000", "need no warm-up");
  expect_refused("fit " + model + " --iter 2000", "--error N says how exact, --budget N how much work that may cost");
  expect_refused("fit " + model + " --adapt-delta=0.95", "hone calls it --target-accept N");
  expect_refused("fit " + model + " --max_treedepth 12", "hone has no trees");
  expect_refused("fit " + model + " --thin 2", "--draws N says how many draws are kept");
  expect_refused("fit " + model + " --refresh 0", "--quiet hides it");
  expect_refused("fit " + model + " sample num_samples=100", "'sample': hone fit has one method");
  expect_refused("fit " + model + " num_samples=100", "'num_samples=100': hone runs many short chains");
  expect_refused("fit " + model + " data file=d.json", "'data': the data are an option of hone: --data FILE.json");
}

TEST_F(FitProgram, BadInputIsRefusedByName) {
  expect_refused("fit --draws 100", "missing argument: MODEL, or --config FILE with the key 'model'");
  expect_refused("fit model.txt", "model.txt");
  expect_refused("fit nothing.so", "nothing.so");
  expect_refused("fit nothing.stan", "nothing.stan");
  expect_refused("fit " + model + " --data nothing.json", "nothing.json");
  expect_refused("fit " + model + " --budget much", "--budget");
  expect_refused("fit " + model + " --budget -3", "--budget");
  expect_refused("fit " + model + " --draws 5", "--draws");
  expect_refused("fit " + model + " --family cauchy", "gaussian-full");
  expect_refused("fit " HONE_FAKES "/libfake_none.so", "libfake_none.so");
  expect_refused("fit " HONE_FAKES "/libfake_needs_data.so", "--data");
  expect_refused("fit " HONE_FAKES "/libfake_version_1.so", "version 1");
  expect_refused("fit " HONE_FAKES "/libfake_empty.so", "parameter");
  expect_refused("check nowhere", "nowhere");
}

TEST_F(FitProgram, DataWithANulAreRefused) {
  write_file(folder.path() / "d.json", std::string_view("\0{\"N\": 1}", 9));
  const Outcome outcome = hone("fit " HONE_FAKES "/libfake_needs_data.so --data d.json");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("d.json: byte 0 is NUL; expected a JSON object"), std::string::npos) << outcome.err;
}

TEST_F(FitProgram, AFitThatFailsLeavesNothingBehind) {
  const std::string nowhere = HONE_FAKES "/libfake_nowhere.so", improper = HONE_FAKES "/libfake_improper.so";
  expect_refused("fit " + nowhere + " --out run", "not finite at any of 800 random points");
  expect_refused("fit " + nowhere, "The model says: sigma[3] is -2, but must be positive (in 'fake', line 4)");
  expect_refused("fit " + improper + " --quiet --out run", "'mu'");
  expect_refused("fit " + improper + " --quiet", "improper");
}

// A limit on the size of files stands for a full disk: the result is printed, and nothing half written stays.
TEST_F(FitProgram, AFullDiskCostsOnlyTheRunFolder) {
  const Outcome full = shell("(trap '' XFSZ; ulimit -f 32; \"$HONE\" fit " + model + " --budget 300000 --out run)");
  EXPECT_EQ(full.code, 1) << full.err;
  EXPECT_NE(full.out.find("verdict: "), std::string::npos) << full.out;
  EXPECT_NE(full.err.find("hone: run/"), std::string::npos) << full.err;
  EXPECT_NE(full.err.find("failed: File too large; the run folder was removed again"), std::string::npos) << full.err;
  EXPECT_EQ(full.err.find("run folder: "), std::string::npos) << full.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(FitProgram, WhatCannotBeWrittenIsRefusedBeforeTheFit) {
  const auto refused = [this](const std::string& arguments, const std::string& part) {
    const Outcome outcome = shell("mkdir -p used && echo x > used/file && \"$HONE\" fit " + model + " " + arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("gradients"), std::string::npos) << outcome.err;  // no progress: nothing was fitted
    EXPECT_EQ(std::distance(std::filesystem::recursive_directory_iterator(folder.path()), {}), 2);
  };
  refused("--out used", "used: the folder is not empty");
  refused("--out used/file", "file is a file");
  refused("--out used/file/deep", "used/file/deep");
  refused("--out /proc/x", "/proc/x: cannot write in the folder /proc");  // also as root
  refused("--out run --warm-start-out used/file", "used/file");
  refused("--out run --warm-start-out used/file/deep", "used/file/deep");
  refused("--data used", "used: is a folder");
}

TEST_F(FitProgram, CheckRefusesOtherRuns) {
  const auto refused = [this](const std::string& script, const std::string& part) {
    const Outcome outcome = shell(script);
    EXPECT_EQ(outcome.code, 2) << script;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  refused("mkdir other && \"$HONE\" check other", "no summary.json");
  refused("echo '{}' > other/summary.json && \"$HONE\" check other", "not the summary of a 'hone fit'");
  refused("echo 'hello' > other/summary.json && \"$HONE\" check other", "not a JSON object");
  refused("\"$HONE\" check other/summary.json", "is a file; expected the folder");
  refused("\"$HONE\" check other --tolerance-mean -1",
          "--tolerance-mean: '-1' is not allowed; expected a number above 0");
  refused("\"$HONE\" check other --tolerance-sd nan", "--tolerance-sd");
  refused("\"$HONE\" check other --tolerance-vcd much", "--tolerance-vcd");
}

// If an entry is missing or of another type or length: a verdict if it does not matter, else an error that names it.
TEST_F(FitProgram, CheckSurvivesADamagedRun) {
  ASSERT_EQ(hone("fit " + model + " --budget 20000 --draws 100 --objective kl --quiet --out run").code, 0);
  const Json whole = summary("run");
  int refused = 0;
  for (const auto& [key, value] : whole["checks"].items())
    for (const Json& instead : {Json(), Json("text"), Json(-5), Json::array(), Json::array({1.5}), Json::object()}) {
      Json damaged = whole;
      damaged["checks"][key] = instead;
      write_file(folder.path() / "run" / "summary.json", damaged.dump());
      const Outcome outcome = hone("check run");
      EXPECT_TRUE(outcome.code == 0 || outcome.code == 10 || outcome.code == 11 || outcome.code == 2)
          << key << " as " << instead << ": " << outcome.code;
      if (outcome.code != 2) continue;
      EXPECT_EQ(outcome.err.rfind("hone: run/summary.json: ", 0), 0u) << outcome.err;
      ++refused;
    }
  EXPECT_GT(refused, 100);
  Json damaged = whole;
  damaged["checks"]["widest"].erase(0);
  write_file(folder.path() / "run" / "summary.json", damaged.dump());
  EXPECT_EQ(hone("check run").err, "hone: run/summary.json: damaged: 'widest' has 1 entries, expected 2\n");
  damaged["checks"].erase("widest");
  write_file(folder.path() / "run" / "summary.json", damaged.dump());
  EXPECT_EQ(hone("check run").err, "hone: run/summary.json: not the summary of a 'hone fit': key 'widest' not found\n");
  damaged = whole;
  damaged["tolerances"]["sd"] = "text";
  write_file(folder.path() / "run" / "summary.json", damaged.dump());
  EXPECT_EQ(hone("check run").err,
            "hone: run/summary.json: not the summary of a 'hone fit': an entry has the wrong type: it must be number, "
            "but is string\n");
}

// Once chance is removed, the narrowest direction may be wide and the widest narrow: neither is reported then.
TEST_F(FitProgram, CheckNamesTheWorstDirectionOnlyIfThereIsOne) {
  ASSERT_EQ(hone("fit " + model + " --budget 20000 --draws 100 --objective kl --quiet --out run").code, 0);
  const Json whole = summary("run");
  const auto printed = [&](double narrow, double wide) {
    Json changed = whole;
    changed["checks"]["narrowest"][0]["sd_ratio"] = narrow;
    changed["checks"]["widest"][0]["sd_ratio"] = wide;
    write_file(folder.path() / "run" / "summary.json", changed.dump());
    const std::string out = hone("check run").out;
    const auto begin = out.find("worst direction: ");
    return begin == std::string::npos ? "" : out.substr(begin, out.find(" along", begin) - begin);
  };
  EXPECT_EQ(printed(0.8, 0.5), "worst direction: q's sd is 0.80 times the refined sd (chance removed)");
  EXPECT_EQ(printed(1.9, 1.2), "worst direction: q's sd is 1.20 times the refined sd (chance removed)");
  EXPECT_EQ(printed(0.8, 1.5), "worst direction: q's sd is 1.50 times the refined sd (chance removed)");
  EXPECT_EQ(printed(1.1, 0.9), "");
}

}  // namespace
}  // namespace hone::test
