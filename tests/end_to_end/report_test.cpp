// `hone report` as a user runs it, and its pages as a browser shows them.

#include <gtest/gtest.h>

#include "tests/end_to_end/program.hpp"

namespace hone::test {
namespace {

namespace fs = std::filesystem;

class ReportProgram : public Program {
 protected:
  static constexpr const char* check = HONE_SOURCE_DIR "/tests/end_to_end/check_page.py ";

  void must(const std::string& arguments) const {
    const Outcome outcome = hone(arguments);
    ASSERT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
  }

  std::string page(const std::string& name) const { return read_file(folder.path() / name); }

  // A page in which the check must find a fault, and the message it must print.
  void expect_fault(const std::string& body, const std::string& part) const {
    write_file(folder.path() / "bad.html", "<!DOCTYPE html><meta name=viewport content='width=device-width'>" + body);
    const Outcome outcome = shell(check + std::string("--figures 1 bad.html"));
    EXPECT_EQ(outcome.code, 1) << body << "\n" << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find(part), std::string::npos) << body << "\n" << outcome.out << outcome.err;
  }
};

TEST_F(ReportProgram, EveryKindOfRunInABrowser) {
  must("toy --target banana --objective kl --quiet --no-figure --out toy-kl");
  must("toy --target banana --quiet --no-figure --out toy-vcd");
  write_file(folder.path() / "c.toml",
             "model = \"vae\"\ndata = \"synthetic\"\nlatent = 2\nhidden = [8]\nencoder_hidden = [8]\n"
             "init = \"paper\"\nbatch = 10\nsteps = 2\niterations = 300\nreport_every = 10\nthreads = 1\n");
  must("train c.toml --quiet --out vae");
  must("eval vae --points 5 --samples 50 --quiet");
  must("train c.toml --set iterations=400 --resume --quiet --out vae");
  must("eval vae --points 5 --samples 50 --quiet");
  must("fit " HONE_FAKES "/libfake_threads.so --budget 300000 --draws 200 --threads 2 --quiet --out fit");

  Outcome outcome = hone("report toy-kl toy-vcd vae --out several.html");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "several.html\n");
  EXPECT_EQ(outcome.err, "");
  outcome = hone("report fit");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "fit/report.html\n");
  EXPECT_EQ(outcome.err, "");

  const std::string fit = page("fit/report.html");
  for (const char* part : {"Marginals of q", "narrowest direction", "The VCD against the number t", "verdict",
                           "twice_tau", "class=\"badge good", "Ranks of the refined draws", "How far chains moved",
                           "nested R-hat", "BFMI", "trajectories", "means, sds and tails drift by "})
    EXPECT_NE(fit.find(part), std::string::npos) << part;
  // contours; ELBO, VCD, acceptance, step size of both kinds; test log-likelihood; four rows of images
  outcome = shell(check + std::string("--figures 14 several.html"));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  outcome = shell(check + std::string("--figures 5 fit/report.html"));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST_F(ReportProgram, FoldersOfSeveralRunsInABrowser) {
  write_file(folder.path() / "c.toml",
             "model = \"vae\"\ndata = \"synthetic\"\nlatent = 2\nhidden = [8]\nencoder_hidden = [8]\n"
             "init = \"paper\"\nbatch = 10\nsteps = 2\niterations = 300\nreport_every = 10\nthreads = 1\n");
  must("train c.toml --seeds 2 --quiet --out group");
  must("report group");
  must("reproduce fig1 --scale smoke --quiet --out paper");
  must("report paper");
  const Outcome outcome = shell(check + std::string("--figures 2 group/report.html paper/report.html"));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST_F(ReportProgram, TheCheckOfPagesFindsFaults) {
  const std::string picture =
      "<img alt='a circle' style='width:200px' src=\"data:image/svg+xml,<svg viewBox='0 0 20 20' "
      "xmlns='http://www.w3.org/2000/svg'><circle cx='9' cy='9' r='7' fill='%23777'/></svg>\">";
  write_file(folder.path() / "good.html", "<!DOCTYPE html><meta name=viewport content='width=device-width'>" + picture);
  const Outcome outcome = shell(check + std::string("--figures 1 good.html"));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  expect_fault("", "has 0 figures");
  expect_fault(picture + "<script>console.error('bad')</script>", "console: ");
  expect_fault(picture + "<script>nothing()</script>", "console: ");
  expect_fault(picture + "<link rel=stylesheet href='file:///nowhere.css'>", "asks for file:///nowhere.css");
  expect_fault(picture + "<div style='width:2000px'>wide</div>", "390 pixels, light: scrolls sideways");
  expect_fault(
      "<img alt='white' src=\"data:image/svg+xml,<svg viewBox='0 0 9 9' xmlns='http://www.w3.org/2000/svg'/>\">",
      "is blank");
  expect_fault("<body style='background:%23fff;color-scheme:light dark'>" + picture.substr(0, 5) + "src='data:,'>",
               "has no alternative text");
  expect_fault("<img alt='broken' src='data:image/png;base64,AAAA'>", "is not there as a whole");
}

TEST_F(ReportProgram, DamagedFoldersAreNamedAndTheRestIsReported) {
  must("toy --quiet --no-figure --out good");
  const Outcome outcome =
      shell("mkdir bad && echo '{\"target' > bad/summary.json && \"$HONE\" report good bad nowhere");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "report.html\n");
  for (const char* part : {"hone: bad: not a run of hone toy, train or fit; summary.json: not a JSON object",
                           "hone: nowhere: no such folder"})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  EXPECT_NE(page("report.html").find("nowhere: no such folder"), std::string::npos);
}

TEST_F(ReportProgram, WithoutGnuplotThePageIsWrittenAndSaysSo) {
  must("toy --quiet --no-figure --out run");
  const Outcome outcome = shell("PATH=/nowhere \"$HONE\" report run");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("gnuplot is not installed"), std::string::npos);
  EXPECT_NE(page("run/report.html").find("gnuplot is not installed"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder.path() / "run/figures/elbo.gp"));
}

TEST_F(ReportProgram, BadInputIsRefused) {
  expect_refused("report", "missing argument: run");
  expect_refused("report nowhere", "nowhere: no such folder");
  expect_refused("report nowhere --out page.html", "nothing can be reported on");
  const Outcome help = hone("report --help");
  for (const char* part : {"RUN", "--out", "report.html", "Example"}) EXPECT_NE(help.out.find(part), std::string::npos);
}

// A folder that is no run is called what it is.
TEST_F(ReportProgram, OtherFoldersAreNamed) {
  must("toy --quiet --no-figure --iterations 20 --out runs/a");
  fs::create_directories(folder.path() / "other/empty");
  EXPECT_NE(hone("report runs/a --out runs/a/config.toml").err.find("config.toml: is there already and no page"),
            std::string::npos);
  const auto expect_said = [this](const std::string& which, const std::string& what) {
    const Outcome outcome = hone("report " + which);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("  " + which + ": " + what), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("has not ended") == std::string::npos, what.find("has not ended") == std::string::npos);
  };
  expect_said("other/empty", "is empty; expected the folder of a run");
  expect_said("other", "is no run: it has neither config.toml nor summary.json");
  expect_said("runs", "is no run, but holds runs: give these, runs/a");
  write_file(folder.path() / "other/config.toml", "");
  expect_said("other", "not a run of hone toy, train or fit; config.toml is empty");
  write_file(folder.path() / "other/config.toml", "tolerance_mean = 0.1\nmodel = \"m.stan\"\n");
  expect_said("other", "a run of hone fit that has not ended");
  fs::remove(folder.path() / "other/config.toml");
  write_file(folder.path() / "other/check.json", "{}");
  expect_said("other", "holds the result of hone check");
}

}  // namespace
}  // namespace hone::test
