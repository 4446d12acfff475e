// hone train, eval and bench as a user runs them, including kills, stops and a full disk.

#include <nlohmann/json.hpp>

#include "tests/end_to_end/program.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using test::Outcome;

class Train : public test::Program {
 protected:
  void SetUp() override {
    write("c.toml",
          "model = \"vae\"\ndata = \"synthetic\"\nlatent = 2\nhidden = [4]\nencoder_hidden = [4]\nbatch = 8\n"
          "steps = 2\niterations = 200\nreport_every = 30\nthreads = 1\n");
  }

  void write(const std::string& name, const std::string& text) const { write_file(folder.path() / name, text); }
  std::string read(const std::string& name) const { return read_file(folder.path() / name); }
  std::string checkpoint(const std::string& run) const { return read(run + "/checkpoint.safetensors"); }

  void expect_error(const std::string& arguments, int code, const std::string& part) const {
    const Outcome outcome = hone(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << "\n" << outcome.err;
  }
  void expect_bad_config(const std::string& line, const std::string& part) const {
    write("bad.toml", "data = \"synthetic\"\n" + line + "\n");
    expect_error("train bad.toml --out bad", 2, part);
    EXPECT_FALSE(fs::exists(folder.path() / "bad"));
  }
};

TEST_F(Train, HelpListsEveryKey) {
  const Outcome help = hone("train --help");
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"model",
                           "data",
                           "binarization",
                           "data_seed",
                           "latent",
                           "hidden",
                           "encoder_hidden",
                           "family",
                           "rank",
                           "activation",
                           "objective",
                           "alpha",
                           "estimator",
                           "first_term",
                           "entropy",
                           "baseline",
                           "local_from",
                           "kernel",
                           "steps",
                           "leapfrog",
                           "leapfrog_jitter",
                           "adapt",
                           "step_size",
                           "acceptance",
                           "step_scale",
                           "batch",
                           "iterations",
                           "optimizer",
                           "rate_mean",
                           "rate_scale",
                           "rate_model",
                           "rate_decay",
                           "decay_every",
                           "precision",
                           "seed",
                           "report_every",
                           "checkpoint.every",
                           "checkpoint.minutes",
                           "engine",
                           "threads",
                           "init",
                           "score_bound",
                           "schedule.alpha_from",
                           "schedule.alpha_until",
                           "schedule.warmup"})
    EXPECT_NE(help.out.find(std::string("\n  ") + word + "\n"), std::string::npos) << word;
  for (const char* flag :
       {"--set", "--engine", "--threads", "--iterations", "--seed", "--seeds", "--out", "--resume", "--data-dir"})
    EXPECT_NE(help.out.find(flag), std::string::npos) << flag;
  EXPECT_NE(help.out.find("vcd: 0 is Hoffman's method, 1 the VCD"), std::string::npos);  // the model learns at z_t
  EXPECT_NE(hone("toy --help").out.find("vcd: 0 is the KL divergence, 1 the VCD"), std::string::npos);  // no model
}

TEST_F(Train, EveryKeyIsDocumented) {
  const std::string page = read_file(fs::path(HONE_SOURCE_DIR) / "docs/keys.md"), help = hone("train --help").out;
  std::istringstream lines(help.substr(help.find("Keys of CONFIG.toml")));
  std::string line;
  std::getline(lines, line);
  int keys = 0;
  while (std::getline(lines, line) && !line.empty()) {
    if (line.starts_with("      ")) continue;
    EXPECT_NE(page.find("| `" + line.substr(2) + "` |"), std::string::npos) << line;
    ++keys;
  }
  EXPECT_GT(keys, 35);
}

// Configurations shared by several objectives may have such keys: a note, not an error.
TEST_F(Train, KeysThatDoNothingAreRemarkedOn) {
  const auto remarks = [this](const std::string& options) {
    return hone(
               "train c.toml --iterations 1 --set hidden=3 --set steps=3 --set adapt=between --set "
               "schedule.alpha_from=0 "
               "--set schedule.alpha_until=0 " +
               options)
        .err;
  };
  const std::string note = "note: --set steps; --set adapt: no effect under objective kl\n";
  EXPECT_EQ(remarks("--set objective=kl --out a").find(note), 0u);
  EXPECT_EQ(remarks("--set objective=vcd --out b").find("note: "), std::string::npos);
  EXPECT_EQ(remarks("--set objective=kl --quiet --out c"), "");
  const std::string hoffman = remarks("--set objective=hoffman --set baseline=global --set local_from=5 --out d");
  EXPECT_EQ(hoffman.find("note: --set baseline; --set local_from: no effect under objective hoffman\n"), 0u) << hoffman;
  EXPECT_NE(remarks("--set objective=kl --set step_scale=q --out f").find("; --set step_scale: no effect under"),
            std::string::npos);
  expect_error("train c.toml --set step_scale=q --engine cuda --out g", 2, "step_scale");
  EXPECT_EQ(hone("train a/config.toml --set steps=8 --set adapt=inside --out e").err.find("note: "), std::string::npos)
      << "a run's own configuration has every key";
}

// The authors' initial weights put standard deviations of q at their floor, so q is left behind in the first
// iterations.
TEST_F(Train, SaysWhenQDoesNotFollow) {
  const std::string words = "q was left behind since iteration ",
                    paper =
                        "train c.toml --set init=paper --set score_bound=0 "
                        "--set schedule.alpha_from=0 --set schedule.alpha_until=0 ";
  EXPECT_NE(hone(paper + "--out a").out.find("THIS TRAINING WENT WRONG: " + words), std::string::npos);
  EXPECT_NE(hone(paper + "--seeds 1 --out b").out.find("seed 1 WENT WRONG: " + words), std::string::npos);
  EXPECT_NE(nlohmann::json::parse(read("a/summary.json"))["trouble"]["advice"].get<std::string>().find("init"),
            std::string::npos);
  EXPECT_NE(hone(paper + "--set report_every=1 --iterations 4 --out d").err.find(words), std::string::npos)
      << "while it runs";
  EXPECT_NE(hone(paper + "--set report_every=1 --iterations 4 --quiet --out e").err.find("e: iteration 3: " + words),
            std::string::npos)
      << "also if quiet";
  EXPECT_NE(hone(paper + "--quiet --json --out f").err.find("f: THIS TRAINING WENT WRONG: " + words), std::string::npos)
      << "JSON on stdout is no message";
  EXPECT_EQ(hone("report a --out a.html").code, 0);
  EXPECT_NE(read("a.html").find(words), std::string::npos);
  EXPECT_EQ(hone("train c.toml --set objective=kl --out c-kl").out.find("WRONG"), std::string::npos);
  EXPECT_EQ(
      hone("train c.toml --set schedule.alpha_from=10 --set schedule.alpha_until=50 --out c-vcd").out.find("WRONG"),
      std::string::npos);
}

TEST_F(Train, SaysWhenTheRunEndsBeforeTheVcdTakesOver) {
  const std::string note =
      "note: alpha reaches only 0.250 of its value: the run ends at iteration 40, and schedule.alpha_until is 100";
  const std::string schedule = "train c.toml --set schedule.alpha_from=20 --set schedule.alpha_until=100 ";
  const Outcome early = hone(schedule + "--iterations 40 --out a"), late = hone(schedule + "--iterations 100 --out b");
  EXPECT_NE(early.err.find(note), std::string::npos);
  EXPECT_NE(early.out.find("\n  note: alpha reaches only 0.250 of its value:"), std::string::npos) << early.out;
  EXPECT_EQ((late.err + late.out).find("note:"), std::string::npos);
  const Outcome group = hone(schedule + "--iterations 10 --seeds 2 --out c --quiet");
  EXPECT_NE(group.out.find("\n  note: the VCD has no part in this run"), std::string::npos) << group.out;
}

TEST_F(Train, KnowsTheConfigurationsThatComeWithHone) {
  const std::string settings = " --set data=synthetic --set hidden=4 --set encoder_hidden=4 --iterations 3 --threads 1";
  const std::string note = ": there is no such file here; this is the one in hone";
  for (const std::string name : {"configs/best/vae-mnist.toml", "paper/vae-mnist-vcd.toml"}) {
    const Outcome outcome = hone("train " + name + settings + " --out " + fs::path(name).stem().string());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("note: " + name + note), std::string::npos) << outcome.err;
  }
  EXPECT_NE(read("vae-mnist/config.toml").find("decay_every = 3500"), std::string::npos);
  fs::create_directories(folder.path() / "configs/best");
  write("configs/best/vae-mnist.toml", read("c.toml"));
  const Outcome own = hone("train configs/best/vae-mnist.toml --iterations 3 --out own");
  EXPECT_EQ(own.err.find(note), std::string::npos) << "a file comes first";
  expect_error("train configs/best/vae-mnst.toml --out none", 2,
               "configs/best/vae-mnst.toml: cannot be read: No such file or directory; did you mean "
               "'configs/best/vae-mnist.toml'?");
  expect_error("train none.toml --out none", 2, "none.toml: cannot be read: No such file or directory\n");
}

TEST_F(Train, BadConfigurationsAreRefusedByLineAndKey) {
  expect_bad_config("latnet = 3", "bad.toml:2: there is no key 'latnet'; did you mean 'latent'?");
  expect_bad_config("latent = \"three\"", "bad.toml:2: latent: 'three' is not allowed; expected an integer");
  expect_bad_config("latent = 0", "bad.toml:2: latent: '0' is not allowed");
  expect_bad_config("hidden = 200", "bad.toml:2: hidden: 200 is not allowed; expected a list");
  expect_bad_config("objective = \"vdc\"", "did you mean 'vcd'?");
  expect_bad_config("[checkpoint]\nevry = 3",
                    "bad.toml:3: there is no key 'checkpoint.evry'; did you mean 'checkpoint.every'?");
  expect_bad_config("model = \"logistic-mf\"\nhidden = [3]",
                    "bad.toml:3: hidden: matrix factorization has no hidden layers");
  expect_bad_config("leapfrog_jitter = 5", "bad.toml:2: leapfrog_jitter: must be below leapfrog, which is 5");
  expect_bad_config("\nbinarization = \"threshold\"",
                    "bad.toml:3: binarization: the data of synthetic are already bits");
  expect_bad_config("batch = 6000", "bad.toml:2: batch: 6000 is more than the 5000 training data");
  expect_bad_config("objective = \"kl\"\nalpha = 0.5", "bad.toml:3: alpha: only objective vcd uses it; leave it out");
  expect_bad_config("objective = \"kl\"\nscore_bound = 5",
                    "bad.toml:3: score_bound: only objective vcd uses it; leave it out");
  expect_bad_config("[schedule]\nalpha_from = 9000",
                    "bad.toml:3: schedule.alpha_from: 9000 is above schedule.alpha_until, which is 2000; set both");
  expect_bad_config("init = \"xavier\"", "bad.toml:2: init: 'xavier' is not allowed; expected one of scaled, paper");
  expect_bad_config("model = \"VAE\"", "did you mean 'vae'?");
  expect_bad_config("latent = {}", "bad.toml:2: latent: a table is not allowed; expected an integer");
  expect_bad_config("engine = \"gpu\"", "expected one of auto, cpu");
  expect_error("train", 2, "missing argument: config");
  expect_error("train missing.toml", 2, "missing.toml");
  expect_error("train c.toml --set latnet=3", 2, "--set latnet: there is no key 'latnet'; did you mean 'latent'?");
  expect_error("train c.toml --set latent", 2, "expected key=value");
  expect_error("train c.toml --iterations 0", 2, "--iterations: '0'");
  expect_error("train c.toml --set data=missing.npy", 2, "missing.npy");
  expect_error("train c.toml --set data=minst", 2, "--set data: there is no data set 'minst'");
  expect_error("train c.toml --set data=minst", 2, "did you mean 'mnist'?");
  expect_error("eval missing", 2, "missing: not the folder of a training run");
  EXPECT_FALSE(fs::exists(folder.path() / "runs"));
}

TEST_F(Train, TrainsEvaluatesAndPrintsJson) {
  const Outcome trained = hone("train c.toml --set hidden=3,3 --set model=vae --seed 7 --json");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.err.find("run folder: runs/vae-synthetic-vcd-seed7"), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("acceptance"), std::string::npos);
  const std::string run = "runs/vae-synthetic-vcd-seed7";
  EXPECT_EQ(trained.out, read(run + "/summary.json"));
  const auto summary = nlohmann::json::parse(trained.out);
  for (const char* key : {"model", "data", "binarization", "objective", "alpha", "steps", "seed", "engine", "threads",
                          "iterations", "seconds", "us_per_iteration", "elbo", "vcd", "acceptance", "step_size"})
    EXPECT_TRUE(summary.contains(key)) << key;
  EXPECT_TRUE(summary["elbo"].contains("se"));
  EXPECT_EQ(summary["engine"], "cpu");
  const std::string header = "iteration,seconds,elbo,elbo_se,vcd,vcd_se,acceptance,step_size,rejected_nonfinite\n";
  EXPECT_TRUE(read(run + "/metrics.csv").starts_with(header));

  const Outcome evaluated = hone("eval " + run + " --samples 50 --points 20 --json --quiet");
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  const auto with_evaluation = nlohmann::json::parse(read(run + "/summary.json"));
  EXPECT_EQ(with_evaluation["test_log_likelihood"], nlohmann::json::parse(evaluated.out));
  const Outcome table = hone("eval " + run + " --samples 50 --points 20 --proposals 1,3");
  EXPECT_NE(table.out.find("not a lower bound"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("equal mixture"), std::string::npos);
  EXPECT_NE(test::unwrapped(table.out).find("± standard error over data"), std::string::npos);
  const Outcome one = hone("eval " + run + " --samples 50 --points 1");
  EXPECT_NE(test::unwrapped(one.out).find("no standard error from one point"), std::string::npos) << one.out;
  EXPECT_EQ(one.out.find("nan"), std::string::npos) << one.out;
  EXPECT_TRUE(nlohmann::json::parse(read(run + "/summary.json"))["test_log_likelihood"]["se"].is_null());
  EXPECT_EQ(table.out.find("2  chain's mean, q's sd"), std::string::npos);
  expect_error("eval " + run + " --proposals 4", 2, "--proposals");
  const Outcome annealed = hone("eval " + run + " --points 20 --ais-only --ais-steps 20 --ais-chains 3 --ais-check 5");
  EXPECT_EQ(annealed.code, 0) << annealed.err;
  EXPECT_NE(annealed.out.find("annealed, from the prior"), std::string::npos) << annealed.out;
  EXPECT_NE(annealed.out.find("20 temperatures, 3 chains per datum"), std::string::npos) << annealed.out;
  EXPECT_NE(annealed.out.find("on 5 data simulated from the model: at least"), std::string::npos) << annealed.out;
  EXPECT_EQ(annealed.out.find("equal mixture"), std::string::npos) << annealed.out;
  const Outcome with_ais = hone("eval " + run + " --samples 50 --points 20 --ais --ais-steps 20 --json");
  const auto after = nlohmann::json::parse(with_ais.out);
  EXPECT_EQ(after["ais"]["steps"], 20);
  EXPECT_EQ(after["ais"]["chains"], 8);
  EXPECT_EQ(after["samples"], 50);
  expect_error("eval " + run + " --ais-steps 20", 2, "--ais");
  expect_error("eval " + run + " --ais-only --samples 20", 2, "--samples");
  expect_error("eval " + run + " --ais --ais-steps 0", 2, "--ais-steps");
  expect_error("eval " + run + " --split other", 2, "train, validation or test");

  const auto kl = nlohmann::json::parse(hone("train c.toml --set objective=kl --out kl --json --quiet").out);
  EXPECT_TRUE(kl["vcd"]["mean"].is_null());
  EXPECT_EQ(kl["elbo"]["mean"].type(), nlohmann::json::value_t::number_float);
}

TEST_F(Train, SignalsEndWithACheckpointAndTheirExitCode) {
  EXPECT_EQ(hone("train c.toml --out whole --iterations 3000 --quiet").code, 0);
  const auto stop_by = [&](const std::string& signal) {
    return shell(
               "\"$HONE\" train c.toml --out run --iterations 2000000 --resume & pid=$!; sleep 0.4\n"
               "while [ ! -s run/metrics.csv ]; do sleep 0.05; done; kill -" +
               signal + " $pid; wait $pid")
        .code;
  };
  EXPECT_EQ(stop_by("INT"), 130);
  EXPECT_EQ(stop_by("TERM"), 143);
  const auto summary = nlohmann::json::parse(read("run/summary.json"));
  EXPECT_EQ(summary["finished"], false);
  const unsigned reached = summary["iterations"];
  EXPECT_GT(reached, 0u);
  const unsigned goal = std::max(3000u, reached + 10);
  EXPECT_EQ(hone("train c.toml --out run --resume --quiet --iterations " + std::to_string(goal)).code, 0);
  EXPECT_EQ(hone("train c.toml --out whole --resume --quiet --iterations " + std::to_string(goal)).code, 0);
  EXPECT_EQ(checkpoint("run"), checkpoint("whole"));
}

TEST_F(Train, ADamagedCheckpointIsToldOfEvenIfQuiet) {
  EXPECT_EQ(hone("train c.toml --out run --set checkpoint.every=50 --quiet").code, 0);
  std::string bytes = read("run/checkpoint.safetensors");
  bytes[bytes.size() / 2] ^= 1;
  write_file(folder.path() / "run" / "checkpoint.safetensors", bytes);
  for (const std::string command :
       {"eval run --samples 10 --points 2 --quiet", "train c.toml --out run --resume --quiet"}) {
    const Outcome outcome = hone(command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("the checksum is wrong"), std::string::npos) << command << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find("the previous one is good"), std::string::npos) << command;
  }
}

TEST_F(Train, ResultsThatCannotBeWrittenAreStillPrinted) {
  EXPECT_EQ(hone("train c.toml --out run --quiet").code, 0);
  // No file may grow: what a full disk is to write_file. The table goes to a pipe.
  const Outcome outcome =
      shell("{ trap '' XFSZ; ulimit -f 0; \"$HONE\" eval run --samples 10 --points 2 --quiet; } 2>&1 | cat");
  EXPECT_NE(outcome.out.find("equal mixture"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("the results above are not in the folder"), std::string::npos) << outcome.out;
}

TEST_F(Train, KilledAtAnyMomentItGoesOnWithTheSameBits) {
  EXPECT_EQ(hone("train c.toml --out whole --quiet").code, 0);
  std::srand(11);
  const std::string command = "train c.toml --out run --resume --set checkpoint.every=1";
  int killed = 0;
  for (int i = 0; i < 12; ++i) {
    const std::string wait = "0." + std::to_string(100 + std::rand() % 150);
    killed += shell("\"$HONE\" " + command + " & pid=$!; sleep " + wait + "; kill -KILL $pid; wait $pid").code == 137;
  }
  EXPECT_GT(killed, 0);
  const Outcome last = hone(command);
  EXPECT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(checkpoint("run"), checkpoint("whole"));
  for (const auto& entry : fs::directory_iterator(folder.path() / "run"))
    EXPECT_NE(entry.path().extension(), ".partial");
}

TEST_F(Train, AFullDiskIsAClearErrorAndTheGoodCheckpointStands) {
  EXPECT_EQ(hone("train c.toml --out run --quiet").code, 0);
  const std::string good = checkpoint("run");
  const Outcome full = shell("trap '' XFSZ; ulimit -f 40; \"$HONE\" train c.toml --out run --resume --iterations 300");
  EXPECT_EQ(full.code, 1) << full.err;
  EXPECT_NE(full.err.find("writing failed"), std::string::npos) << full.err;
  const std::string stands = "the last good checkpoint: run/checkpoint.safetensors, iteration 200";
  EXPECT_NE(full.err.find(stands), std::string::npos) << full.err;
  EXPECT_EQ(checkpoint("run"), good);
}

TEST_F(Train, ACutCheckpointAndAnotherModelAreNamed) {
  EXPECT_EQ(hone("train c.toml --out run --quiet --set checkpoint.every=150").code, 0);
  expect_error("train c.toml --out run", 2, "run: there is a run in this folder already");
  expect_error("train c.toml --out run --resume --set steps=3", 2, "steps = 2, which is now 3");
  const std::string good = checkpoint("run");
  write("run/checkpoint.safetensors", good.substr(0, good.size() - 1));
  expect_error("train c.toml --out run --resume", 0,
               "the previous one is good: run/checkpoint.previous.safetensors, iteration 150");
  EXPECT_EQ(checkpoint("run"), good);
  write("run/checkpoint.safetensors", "");
  write("run/checkpoint.previous.safetensors", "no");
  expect_error("train c.toml --out run --resume", 2, "no good checkpoint:\nrun/checkpoint.safetensors: truncated");
  expect_error("eval run", 2, "no good checkpoint");
}

TEST_F(Train, ACheckpointIsParsedInPlainPython) {
  EXPECT_EQ(hone("train c.toml --out run --quiet").code, 0);
  write("parse.py", R"(
import json, struct
data = open("run/checkpoint.safetensors", "rb").read()
length = struct.unpack("<Q", data[:8])[0]
assert length % 8 == 0
header = json.loads(data[8:8 + length])
notes = header.pop("__metadata__")
assert notes["config.latent"] == "2" and all(isinstance(value, str) for value in notes.values())
width, end = {"F32": 4, "F64": 8, "I64": 8}, 0
for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    begin, stop = entry["data_offsets"]
    count = 1
    for extent in entry["shape"]:
        count *= extent
    assert begin == end and begin % width[entry["dtype"]] == 0 and stop - begin == count * width[entry["dtype"]], name
    end = stop
assert 8 + length + end == len(data)
offset = 8 + length + header["run.iterations"]["data_offsets"][0]
assert struct.unpack("<q", data[offset:offset + 8])[0] == 200
assert header["decoder.weight[0]"]["shape"] == [2, 4]
print("good")
)");
  const Outcome parsed = shell("python3 parse.py");
  EXPECT_EQ(parsed.out, "good\n") << parsed.err;
}

TEST_F(Train, ACheckpointIsReadByThePackageSafetensors) {
  if (shell("python3 -c 'import safetensors.numpy'").code != 0)
    GTEST_SKIP() << "Python has no package safetensors here (pip install safetensors numpy)";
  EXPECT_EQ(hone("train c.toml --out run --quiet").code, 0);
  write("load.py", R"(
import safetensors, safetensors.numpy
tensors = safetensors.numpy.load_file("run/checkpoint.safetensors")
weight = tensors["decoder.weight[0]"]
assert weight.shape == (2, 4) and weight.dtype == "float32" and (weight != 0).all()
assert tensors["baseline.second"].dtype == "float64" and tensors["run.iterations"].tolist()[0] == 200
with safetensors.safe_open("run/checkpoint.safetensors", framework="numpy") as file:
    assert file.metadata()["config.latent"] == "2"
print("good")
)");
  const Outcome loaded = shell("python3 load.py");
  EXPECT_EQ(loaded.out, "good\n") << loaded.err;
}

TEST_F(Train, SeveralSeedsHaveARunFolderEach) {
  const Outcome trained = hone("train c.toml --seeds 3,5 --out group --json --quiet");
  EXPECT_EQ(trained.code, 0) << trained.err;
  const auto list = nlohmann::json::parse(trained.out);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1], nlohmann::json::parse(read("group/seed-5/summary.json")));
  EXPECT_EQ(list[1]["runs_side_by_side"], 1);
  EXPECT_EQ(hone("train c.toml --seed 5 --out alone --quiet").code, 0);
  EXPECT_EQ(checkpoint("group/seed-5"), checkpoint("alone"));
  EXPECT_EQ(hone("eval group/seed-3 --samples 50 --points 20 --quiet").code, 0);
  const Outcome table = hone("train c.toml --seeds 2");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("mean"), std::string::npos) << table.out;
  EXPECT_NE(table.err.find("run folders in: runs/vae-synthetic-vcd"), std::string::npos) << table.err;
  EXPECT_TRUE(fs::exists(folder.path() / "runs/vae-synthetic-vcd/seed-2/summary.json"));
  expect_error("train c.toml --seeds 2", 2, "seed-1: there is a run in this folder already");
  for (const char* bad : {"0", "x", "3,", "3,3", "-1", "1;2"})
    expect_error("train c.toml --out bad --seeds " + ("'" + std::string(bad) + "'"), 2, "--seeds: ");
  expect_error("train c.toml --out bad --seeds 2 --seed 1", 2, "--seed and --seeds");
  EXPECT_FALSE(fs::exists(folder.path() / "bad"));
}

TEST_F(Train, AGroupThatWasStoppedOrKilledGoesOn) {
  const std::string common = "train c.toml --seeds 2 --quiet --set checkpoint.every=100 --iterations ";
  const Outcome stopped =
      shell("\"$HONE\" " + common +
            "2000000 --out run & pid=$!\n"
            "while [ ! -s run/seed-1/metrics.csv ]; do sleep 0.05; done; kill -TERM $pid; wait $pid");
  EXPECT_EQ(stopped.code, 143) << stopped.err;
  const unsigned reached = nlohmann::json::parse(read("run/seed-1/summary.json"))["iterations"];
  const std::string goal = std::to_string(reached + 1000);
  EXPECT_EQ(hone(common + goal + " --out run --resume").code, 0);
  EXPECT_EQ(hone(common + goal + " --out whole").code, 0);
  shell("\"$HONE\" " + common + goal +
        " --out killed & pid=$!\n"
        "while [ ! -s killed/seed-2/checkpoint.safetensors ]; do sleep 0.01; done; kill -KILL $pid; wait $pid");
  const Outcome went_on = hone(common + goal + " --out killed --resume");
  EXPECT_EQ(went_on.code, 0) << went_on.err;
  for (const std::string run : {"/seed-1", "/seed-2"}) {
    EXPECT_EQ(checkpoint("whole" + run), checkpoint("run" + run));
    EXPECT_EQ(checkpoint("whole" + run), checkpoint("killed" + run));
  }
}

TEST_F(Train, FewDataAreOneBatch) {
  write("few.csv", "a,b\n1,2\n2,4\n3,5\n4,9\n");
  write("few.toml",
        "model = \"gaussian-mf\"\ndata = \"few.csv\"\nlatent = 1\nsplit = 0.25\niterations = 5\nthreads = 1\n");
  const Outcome outcome = hone("train few.toml --out few --quiet");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(read("few/config.toml").find("\nbatch = 3 "), std::string::npos);
  EXPECT_EQ(hone("train few.toml --out few --quiet --resume --iterations 9").code, 0);
  expect_error("train few.toml --set batch=4 --out more", 2, "--set batch: 4 is more than the 3 training data");
}

TEST_F(Train, FoldersAreLookedAtFirst) {
  write("taken", "a file");
  expect_error("train c.toml --out fresh --tensorboard taken", 2, "--tensorboard: taken: expected a folder");
  EXPECT_FALSE(fs::exists(folder.path() / "fresh"));
  fs::create_directory(folder.path() / "other");
  write("other/notes", "mine");
  expect_error("eval other", 2, "other: not the folder of a training run");
}

TEST_F(Train, BenchPrintsJson) {
  const Outcome outcome = hone(
      "bench iteration --model logistic-mf --latent 3 --steps 1 --batch 5 --threads 1 --iterations 9 --runs 2 "
      "--json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  for (const char* key : {"us_per_iteration", "gflops", "peak_gflops", "fraction_of_peak"})
    EXPECT_GT(json[key], 0) << key;
  EXPECT_EQ(json["latent"], 3);
  EXPECT_EQ(json["batch"], 5);
  EXPECT_TRUE(json["hidden"].empty());
  expect_error("bench iteration --model gan", 2, "--model: 'gan'");
}

}  // namespace
}  // namespace hone
