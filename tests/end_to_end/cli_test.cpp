// The program as a user runs it in a terminal.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/end_to_end/program.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using test::Outcome;

class Program : public test::Program {};

TEST_F(Program, HelpListsTheSubcommandsAndEveryFlag) {
  EXPECT_EQ(hone("--help").code, 0);
  EXPECT_NE(hone("--help").out.find("reproduce"), std::string::npos);
  const Outcome toy = hone("toy --help");
  EXPECT_EQ(toy.code, 0);
  for (const char* flag : {"--target",      "--family",    "--components", "--objective",  "--alpha",
                           "--kernel",      "--steps",     "--leapfrog",   "--iterations", "--draws-per-iteration",
                           "--baseline",    "--estimator", "--first-term", "--rate-mean",  "--rate-scale",
                           "--rate-weight", "--seed",      "--out",        "--json",       "--quiet",
                           "--threads",     "--adapt",     "--config"})
    EXPECT_NE(toy.out.find(flag), std::string::npos) << flag;
  EXPECT_EQ(hone("--version").code, 0);
  const Outcome bare = hone("");
  EXPECT_EQ(bare.code, 0);
  EXPECT_EQ(bare.out, hone("--help").out);
}

TEST_F(Program, HelpSaysWhatAFlagTakes) {
  EXPECT_NE(hone("fit --help").out.find("--budget N|Ns "), std::string::npos);
  EXPECT_NE(hone("bench iteration --help").out.find("[generated images of 28 x 28]"), std::string::npos);
}

// "  --flag TAKES   what it means [default]": the description of an option begins in lower case, and its default ends
// it.
TEST_F(Program, HelpOfEveryOptionHasOneStyle) {
  int options = 0;
  for (const char* command : {"",
                              "fit",
                              "check",
                              "summary",
                              "compare",
                              "toy",
                              "reproduce",
                              "reproduce table1",
                              "train",
                              "eval",
                              "encode",
                              "refine",
                              "reconstruct",
                              "sample",
                              "score",
                              "export",
                              "report",
                              "data",
                              "data list",
                              "data get",
                              "data verify",
                              "data show",
                              "bench",
                              "bench iteration",
                              "stan",
                              "stan install",
                              "stan compile",
                              "info",
                              "manual"}) {
    const Outcome help = hone(std::string(command) + " --help");
    ASSERT_EQ(help.code, 0) << command;
    std::istringstream lines(help.out.substr(help.out.find("\nOptions:")));
    std::string line;
    while (std::getline(lines, line)) {
      if (!line.starts_with("  -")) continue;
      const bool is_long = line.size() < 35 || line[33] != ' ';  // its description has a line of its own
      EXPECT_EQ(line.substr(0, is_long ? line.npos : 34).find('['), line.npos) << command << ": " << line;
      if (is_long) std::getline(lines, line);
      ASSERT_GT(line.size(), 35u) << command;
      EXPECT_FALSE(std::isupper(line[34]) && std::islower(line[35])) << command << ": " << line;
      ++options;
    }
  }
  EXPECT_GT(options, 150);
}

#ifdef HONE_WITHOUT_CUDA
TEST_F(Program, InfoSaysWhyThereIsNoCuda) {
  const std::string text = hone("info").out;
  EXPECT_NE(text.find("not built: "), std::string::npos) << text;
}
#endif

TEST_F(Program, BadFlagsAreRefusedByName) {
  expect_refused("data", "Download and verify data sets");
  expect_refused("reproduce", "All experiments above");
  expect_refused("data", "Usage: hone data ");
  expect_refused("stan", "hone: missing subcommand: 'hone stan' needs one of install, compile");
  expect_refused("toy --out x --rate-decay 0", "expected a number above 0 and at most 1");
  expect_refused("toy --out x --seed x", "expected an integer from 0 to 1000000000000000000");
  expect_refused("toys", "unknown argument 'toys'; did you mean 'toy'?");
  expect_refused("toy --stepz 3", "unknown argument '--stepz'; did you mean '--steps'?");
  expect_refused("toy --out x --steps", "hone: --steps needs a value\nSee 'hone toy --help'.");
  expect_refused("toy --seed --out x", "hone: --seed needs a value, and --out follows; ");
  expect_refused("toy --out --quiet",
                 "hone: --out needs a value, and --quiet follows; a value that begins with dashes is written "
                 "--out=--quiet\nSee 'hone toy --help'.");
  expect_refused("train c.toml --data-dir --nonsense", "hone: --data-dir needs a value, and --nonsense follows; ");
  expect_refused("sample r -n --mean", "hone: -n needs a value, and --mean follows\n");
  expect_refused("train c.toml --out=--resume", "hone: c.toml: ");
  expect_refused("toy --out x --target bananna",
                 "--target: 'bananna' is not allowed; expected one of gaussian, mixture, banana; "
                 "did you mean 'banana'?");
  expect_refused("toy --out x --family normal", "--family: 'normal'");
  expect_refused("toy --out x --objective elbo", "--objective: 'elbo'");
  expect_refused("toy --out x --kernel nuts", "--kernel: 'nuts'");
  expect_refused("toy --out x --steps -1", "--steps: '-1'");
  expect_refused("toy --out x --steps 0", "--steps: '0'");
  expect_refused("toy --out x --iterations -5", "--iterations: '-5'");
  expect_refused("toy --out x --iterations many", "--iterations: 'many'");
  expect_refused("toy --out x --draws-per-iteration 0", "--draws-per-iteration: '0'");
  expect_refused("toy --out x --components 0", "--components: '0'");
  expect_refused("toy --out x --alpha 1.5", "--alpha: '1.5'");
  expect_refused("toy --out x --rate-mean -1", "--rate-mean: '-1'");
  expect_refused("toy --out x --rate-scale nan", "--rate-scale: 'nan'");
  expect_refused("toy --out x --seed -3", "--seed: '-3'");
  expect_refused("toy --out x --threads 0", "--threads: '0'");
  expect_refused("toy --out x --baseline leave-one-out",
                 "--baseline: leave-one-out needs draws_per_iteration of at least 2");
  expect_refused("toy --out x --entropy analytic --family mixture", "--entropy");
  expect_refused("toy --out x --leapfrog 3 --leapfrog-jitter 3",
                 "--leapfrog-jitter: must be below leapfrog, which is 3");
  expect_refused("toy --out x --objective kl --alpha 0.5", "--alpha: only objective vcd uses it; leave it out");
  expect_refused("toy --out x --components 3", "--components: only a mixture q uses it; leave it out");
  expect_refused("toy --out x --adapt off --acceptance 0.5",
                 "--acceptance: only a step size that adapts uses it; leave it out");
  expect_refused("toy --out x --objective VCD", "did you mean 'vcd'?");
  expect_refused("toy --out x --config missing.toml", "missing.toml");
}

// Options that the parser checks itself answer as those of a configuration do.
TEST_F(Program, TheParserSpeaksAsWeDo) {
  expect_refused(
      "export x --format onxx",
      "hone: --format: 'onxx' is not allowed; expected onnx, torch or npz; did you mean 'onnx'?\nSee 'hone ");
  expect_refused("sample x -n 0", "hone: --count: '0' is not allowed; expected an integer from 1 to 100000000\n");
  expect_refused("encode x y --threads 9999999999999999999", "expected an integer from 1 to 1024\n");
  expect_refused("encode x y --refine 1 --seed 1.5",
                 "hone: --seed: '1.5' is not allowed; expected an integer from 0 to 1000000000000000000\n");
  expect_refused("sample x --z f --between 1,2",
                 "hone: --z and --between exclude each other; leave one of the two out\n");
  expect_refused("encode x y --seed 1", "hone: --seed needs --refine\n");
  expect_refused("sample x --between a,b", "hone: --between: 'a,b' is not allowed; expected i,j\n");
  expect_refused("eval x --proposals 1,x", "hone: --proposals: '1,x' is not allowed; expected 1,2,3\n");
  expect_refused("toy --seed 1 --seed 2", "hone: --seed is given 2 times; expected once\n");
  expect_refused("data get", "hone: missing argument: name\n");
}

TEST_F(Program, LinesFitTheTerminal) {
  const auto width_of = [](const std::string& line) {
    return std::ranges::count_if(line, [](unsigned char c) { return (c & 0xC0) != 0x80; });
  };
  for (const std::string command : {"info", "data list"}) {
    std::istringstream lines(shell("COLUMNS=70 \"$HONE\" " + command).out);
    for (std::string line; std::getline(lines, line);)
      if (line.find('/') == line.npos) {  // paths are not broken
        EXPECT_LE(width_of(line), 70) << line;
      }
  }
}

TEST_F(Program, TheManualNamesKeysInParagraphs) {
  ASSERT_EQ(hone("manual man").code, 0);
  const std::string page = read_file(folder.path() / "man/man1/hone-train.1");
  EXPECT_NE(page.find(".TP\n.B rate_decay\nfactor on all learning rates"), std::string::npos);
  EXPECT_EQ(page.find(".nf"), std::string::npos);
}

// A limit on the size of files stands for a full disk.
TEST_F(Program, AToyOnAFullDiskLeavesNothing) {
  const Outcome full = shell("(trap '' XFSZ; ulimit -f 4; \"$HONE\" toy --iterations 1000 --no-figure --out run)");
  EXPECT_EQ(full.code, 1) << full.err;
  EXPECT_NE(full.err.find("File too large"), std::string::npos) << full.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(Program, AnUnwritableFolderIsRefusedByName) {
  write_file(folder.path() / "file", "precious");
  for (const std::string command : {"toy --quiet", "reproduce fig1 --quiet"}) {
    EXPECT_EQ(hone(command + " --out file").code, 2);
    const Outcome below = hone(command + " --out file/run");
    EXPECT_EQ(below.code, 2);
    EXPECT_NE(below.err.find("file/run"), std::string::npos);
    const Outcome nowhere = hone(command + " --out /proc/hone/run");
    EXPECT_EQ(nowhere.code, 2);
    EXPECT_NE(nowhere.err.find("/proc/hone/run"), std::string::npos);
  }
  EXPECT_EQ(read_file(folder.path() / "file"), "precious");
  if (::geteuid() != 0) {  // root may write anywhere
    fs::create_directory(folder.path() / "locked");
    fs::permissions(folder.path() / "locked", fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_EQ(hone("toy --out locked").code, 2);
    EXPECT_EQ(hone("toy --out locked/run").code, 2);
  }
}

TEST_F(Program, LoopsOfSymbolicLinksAreBadInput) {
  shell("ln -s one two; ln -s two one");
  for (const std::string command :
       {"eval one", "train one/c.toml", "report one", "fit one/m.stan", "toy --out one/x"}) {
    const Outcome outcome = hone(command);
    EXPECT_EQ(outcome.code, 2) << command << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find("one"), std::string::npos) << command;
    EXPECT_EQ(outcome.err.find("filesystem error"), std::string::npos) << outcome.err;
  }
}

TEST_F(Program, AToyThatDivergesSaysSo) {
  const Outcome outcome = hone("toy --rate-mean 1e10 --iterations 1000 --no-figure --quiet --out run");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("the fit diverged"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("ELBO"), std::string::npos);  // what there is
  EXPECT_TRUE(nlohmann::json::parse(read_file(folder.path() / "run" / "summary.json")).contains("trouble"));
}

// The step size for the final values is found for them: the fit's last one is a matter of chance.
TEST_F(Program, ToysOfOtherSeedsHaveTheSameVcd) {
  std::vector<double> vcd;
  for (const std::string seed : {"1", "2", "3"}) {
    ASSERT_EQ(hone("toy --no-figure --quiet --out run" + seed + " --seed " + seed).code, 0);
    const auto summary = nlohmann::json::parse(read_file(folder.path() / ("run" + seed) / "summary.json"));
    vcd.push_back(summary["vcd"]["mean"]);
    EXPECT_NEAR(vcd.back(), vcd.front(), 0.1 * vcd.front()) << seed;
  }
}

TEST_F(Program, EvalTellsWhoseFolderItIs) {
  ASSERT_EQ(hone("toy --iterations 100 --no-figure --quiet --out run").code, 0);
  for (const std::string file : {"metrics.csv", "summary.json"}) {  // with its summary and without it
    fs::remove(folder.path() / "run" / file);
    const Outcome outcome = hone("eval run");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err,
              "hone: run: this is a folder of hone toy; expected one of hone train. 'hone report run' shows it\n");
  }
  EXPECT_TRUE(
      hone("summary run").err.starts_with("hone: run: this is a folder of hone toy; expected one of hone fit. "));
}

TEST_F(Program, ColumnsOfADivergedToyStayApart) {
  const Outcome outcome = hone("toy --iterations 300 --rate-mean 1e10 --no-figure --quiet --out run");
  EXPECT_EQ(outcome.code, 1);
  std::istringstream lines(outcome.out);
  std::string line, word;
  while (std::getline(lines, line) && !line.starts_with("  mean of q")) {
  }
  std::istringstream words(line);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(words >> word) << line;
    if (i >= 3) {
      EXPECT_TRUE(std::isfinite(std::stod(word))) << line;
    }
  }
  EXPECT_FALSE(words >> word) << line;
}

TEST_F(Program, AToyWritesAWholeRunFolder) {
  const Outcome outcome = hone("toy --target banana --family mixture --iterations 500 --out run --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto summary = nlohmann::json::parse(outcome.out);
  for (const char* key : {"target", "family", "objective", "alpha", "kernel", "seed", "iterations", "mean", "sd",
                          "weights", "component_means", "component_sds", "vcd", "elbo", "acceptance", "step_size",
                          "rejected_nonfinite", "seconds", "iterations_per_second"})
    EXPECT_TRUE(summary.contains(key)) << key;
  EXPECT_TRUE(summary["vcd"].contains("se"));
  EXPECT_EQ(summary["iterations"], 500);
  EXPECT_EQ(outcome.out, read_file(folder.path() / "run" / "summary.json"));
  for (const char* name : {"config.toml", "metrics.csv", "figures/contours.csv", "figures/contours.gp"})
    EXPECT_TRUE(fs::exists(folder.path() / "run" / name)) << name;
  // the folder is now in use
  const Outcome again = hone("toy --iterations 500 --out run");
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("run: the folder is not empty"), std::string::npos);
  EXPECT_EQ(outcome.out, read_file(folder.path() / "run" / "summary.json"));
}

TEST_F(Program, FlagsWinOverAConfigFileAndItsErrorsNameTheLine) {
  EXPECT_EQ(hone("toy --iterations 200 --seed 9 --out a --quiet --no-figure").code, 0);
  const Outcome again = hone("toy --config a/config.toml --out b --json --quiet --no-figure");
  const auto summary = nlohmann::json::parse(again.out);
  EXPECT_EQ(summary["seed"], 9);
  EXPECT_EQ(summary["parameters"], nlohmann::json::parse(read_file(folder.path() / "a/summary.json"))["parameters"]);
  const Outcome other = hone("toy --config a/config.toml --seed 10 --out c --json --quiet --no-figure");
  EXPECT_EQ(nlohmann::json::parse(other.out)["seed"], 10);
  EXPECT_EQ(again.err, "");  // quiet
  write_file(folder.path() / "bad.toml", "seed = 1\nsteps = \"three\"\n");
  const Outcome bad = hone("toy --config bad.toml --out d");
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("bad.toml:2: steps"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder.path() / "d"));
}

TEST_F(Program, Figure1IsResumable) {
  const Outcome listed = hone("reproduce fig1 --seeds 1 --out f --dry-run");
  EXPECT_EQ(listed.code, 0);
  EXPECT_NE(listed.out.find("fig1-e-vcd-seed1                        to do"), std::string::npos);
  const Outcome first = hone("reproduce fig1 --seeds 1 --out f");
  EXPECT_EQ(first.code, 0) << first.err;
  for (const char* panel : {"(a)", "(b)", "(c)", "(d)", "(e)"})
    EXPECT_NE(first.out.find(panel), std::string::npos) << panel;
  fs::remove_all(folder.path() / "f/cells/fig1-c-vcd-seed1");
  const Outcome second = hone("reproduce fig1 --seeds 1 --out f --threads 1");
  EXPECT_EQ(first.out, second.out);
  EXPECT_NE(second.err.find("9/10 cells"), std::string::npos) << second.err;
}

}  // namespace
}  // namespace hone
