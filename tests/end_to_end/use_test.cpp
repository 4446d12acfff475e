// hone encode, reconstruct, sample, score and export as a user runs them.

#include <fstream>

#include "tests/end_to_end/program.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using test::Outcome;

class Use : public test::Program {
 protected:
  void SetUp() override {
    write_file(folder.path() / "c.toml",
               "model = \"vae\"\ndata = \"synthetic\"\nlatent = 2\nhidden = [4]\nencoder_hidden = [4]\nbatch = 8\n"
               "steps = 2\niterations = 60\nthreads = 1\n");
    ASSERT_EQ(hone("train c.toml --out run --quiet").code, 0);
  }

  void expect_error(const std::string& arguments, const std::string& part) const {
    const auto before = files();
    const Outcome outcome = hone(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(files(), before) << arguments;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
  }
  std::string read(const std::string& name) const { return read_file(folder.path() / name); }
};

TEST_F(Use, ResultsDoNotDependOnThreads) {
  for (const std::string command :
       {"encode run train --points 1300 --out z.npy --sd s.npy",
        "encode run train --points 1300 --refine 3 --draws 2 --out z.csv",
        "reconstruct run train --points 1300 --refine 2 --out z.npy", "sample run -n 1300 --out z.npy",
        "sample run --between 1,2 -n 600 --out z.npy", "score run test --points 230 --samples 20 --out z.csv",
        "score run test --points 230 --method ais --ais-steps 10 --out z.csv"}) {
    const std::string file = command.ends_with("csv") ? "z.csv" : "z.npy";
    const Outcome one = hone(command + " --threads 1");
    ASSERT_EQ(one.code, 0) << command << one.err;
    const std::string wanted = read(file);
    ASSERT_EQ(hone(command + " --threads 3").code, 0) << command;
    EXPECT_EQ(read(file), wanted) << command;
  }
}

// A block of data has the same numbers, whichever data come after it.
TEST_F(Use, FirstDataDoNotDependOnTheirNumber) {
  ASSERT_EQ(hone("encode run train --points 1100 --refine 3 --out a.csv").code, 0);
  ASSERT_EQ(hone("encode run train --points 500 --refine 3 --out b.csv").code, 0);
  EXPECT_TRUE(read("a.csv").starts_with(read("b.csv")));
}

// A q with correlations: the same bits on threads and after a stop, used as any other, and no export.
TEST_F(Use, LowRankQ) {
  const std::string train = "train c.toml --quiet --set family=low-rank --set rank=1 ";
  ASSERT_EQ(hone(train + "--out q").code, 0);
  ASSERT_EQ(hone(train + "--out r --iterations 25 --set test.every=0").code, 0);
  ASSERT_EQ(hone(train + "--out r --resume --threads 3").code, 0);
  EXPECT_EQ(read("q/checkpoint.safetensors"), read("r/checkpoint.safetensors"));
  EXPECT_NE(read("q/summary.json").find("\"family\": \"low-rank, rank 1\""), std::string::npos);
  expect_error("train c.toml --out q --resume --quiet", "has family = \"low-rank\", which is now \"diagonal\"");
  for (const std::string command : {"encode q test --out z.csv --sd s.csv", "encode q test --refine 3 --out z.csv",
                                    "refine q test --steps 2 --out z.csv", "reconstruct q test --refine 2 --out z.csv",
                                    "score q test --points 20 --samples 20 --out z.csv",
                                    "eval q --samples 20 --points 20 --ais --ais-steps 5 --quiet", "report q"}) {
    const Outcome outcome = hone(command);
    EXPECT_EQ(outcome.code, 0) << command << outcome.err;
  }
  const std::string page = read("q/report.html");
  EXPECT_NE(page.find("low-rank, rank 1"), std::string::npos);
  for (const std::string format : {"onnx", "torch", "npz"})
    expect_error("export q --format " + format, "the run's q is low-rank, and an export has no form for it");
  expect_error("train c.toml --quiet --set rank=1 --out n", "--set rank: only family low-rank uses it");
  expect_error("train c.toml --quiet --set family=low-rank --engine cuda --out n", "family: ");
}

TEST_F(Use, WithoutAFileCsvGoesToStandardOutput) {
  const Outcome z = hone("encode run test --points 2");
  EXPECT_EQ(z.code, 0);
  EXPECT_TRUE(z.out.starts_with("z_1,z_2\n")) << z.out;
  EXPECT_EQ(std::ranges::count(z.out, '\n'), 3);
}

TEST_F(Use, PicturesAreOneGrid) {
  EXPECT_EQ(hone("sample run -n 10 --mean --out s.png").code, 0);
  EXPECT_EQ(hone("reconstruct run test --points 10 --out r.png").code, 0);
  EXPECT_TRUE(read("s.png").starts_with("\x89PNG"));
  expect_error("sample run -n 20000 --out t.png", "20000 images are too many for one picture");
}

TEST_F(Use, WorksWithoutTheTrainingData) {
  write_file(folder.path() / "x.amat", "0 1 1 0\n1 1 0 0\n0 0 1 0\n");
  ASSERT_EQ(hone("train c.toml --out own --quiet --set data=x.amat --set batch=2").code, 0);
  const std::string z = hone("encode own x.amat").out;
  fs::copy(folder.path() / "x.amat", folder.path() / "y.amat");
  fs::remove(folder.path() / "x.amat");
  EXPECT_EQ(hone("encode own y.amat").out, z);
  EXPECT_EQ(hone("sample own -n 2").code, 0);
  EXPECT_EQ(hone("score own y.amat --samples 10").code, 0);
  expect_error("encode own train", "x.amat");
}

TEST_F(Use, PicturesOfOtherNumbersSayWhatIsBlackAndWhite) {
  shell("for i in 1 2 3 4; do echo 90,100,$i,7; done > x.csv");
  write_file(folder.path() / "c.toml",
             "model = \"poisson-mf\"\ndata = \"x.csv\"\nshape = [2, 2]\nlatent = 1\nbatch = 2\niterations = 300\n");
  ASSERT_EQ(hone("train c.toml --out counts --quiet").code, 0);
  const Outcome drawn = hone("reconstruct counts x.csv --out r.png");
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_NE(drawn.err.find("r.png: black is "), std::string::npos) << drawn.err;
  EXPECT_TRUE(read("r.png").starts_with("\x89PNG"));
}

TEST_F(Use, AHeaderOfNumbersIsSaidToBeOne) {
  shell("printf '2019,2020\\n0,1\\n1,0\\n' > x.csv");
  ASSERT_EQ(hone("train c.toml --out years --quiet --set data=x.csv --set header=yes --set batch=2").code, 0);
  EXPECT_EQ(std::ranges::count(hone("encode years x.csv").out, '\n'), 3) << "a header and two data";
  expect_error("encode years x.csv --header no", "datum 0 has the value 2019");
}

TEST_F(Use, WithoutTestDataTheMessagesSayWhatToDo) {
  shell("mkdir d; for i in 1 2 3 4 5; do echo $i,1,2; done > d/x.csv");
  write_file(
      folder.path() / "c.toml",
      "model = \"mf\"\nlikelihood = \"poisson\"\ndata = \"d/../d/x.csv\"\nlatent = 1\nbatch = 2\niterations = 2\n");
  ASSERT_EQ(hone("train c.toml --out own --quiet").code, 0);
  EXPECT_NE(read("own/config.toml").find("/d/x.csv"), std::string::npos);
  EXPECT_EQ(read("own/config.toml").find("/../"), std::string::npos) << read("own/config.toml");
  expect_error("eval own", "'hone score own FILE' takes data from a file, '--split train' those of the training");
  expect_error("sample own --between 0,1", "name a file of data, or train: those that the model was trained on");
  EXPECT_EQ(hone("sample own train --between 0,1 -n 2").code, 0);
  const Outcome table = hone("eval own --split train --samples 20");
  EXPECT_TRUE(table.out.starts_with("mf (poisson) on ")) << table.out;
  hone("report own");
  EXPECT_NE(read("own/report.html").find("no data were held out for it"), std::string::npos);
  shell("echo 1,2,1e38 >> d/x.csv");
  expect_error(
      "train c.toml --out other",
      "/d/x.csv, not binarized: a Poisson likelihood needs counts up to 16777216: datum 5 has the value 1e+38");
}

TEST_F(Use, NumbersBeyondTheScaleOfALikelihoodAreRefused) {
  shell("printf '1,2\\n3,4\\n' > x.csv; printf '1,2\\n3,1e20\\n' > big.csv");
  write_file(folder.path() / "c.toml",
             "model = \"gaussian-mf\"\ndata = \"x.csv\"\nlatent = 1\nbatch = 2\niterations = 2\n");
  ASSERT_EQ(hone("train c.toml --out reals --quiet").code, 0);
  for (const std::string command : {"encode", "score", "reconstruct"})
    expect_error(command + " reals big.csv",
                 "big.csv: a Gaussian likelihood needs numbers up to 1000000 in size, divide "
                 "them: datum 1 has the value 1e+20 at position 1");
}

TEST_F(Use, BadInputIsRefusedAndNothingIsWritten) {
  write_file(folder.path() / "x.amat", "0 1 1 0\n1 1 0 0\n");
  expect_error("encode", "missing argument: run");
  expect_error("encode nowhere test", "nowhere: not the folder of a training run");
  expect_error("encode run", "missing argument: data");
  expect_error("encode run x.amat", "x.amat: a datum has 4 values and the model 784");
  expect_error("encode run none.npy", "none.npy");
  expect_error("encode run test --out z.txt", "z.txt: expected a name that ends in .npy or .csv");
  expect_error("encode run test --out no/z.npy", "no/z.npy: cannot be written");
  for (const std::string name : {"dir.npy", "dir.png"}) fs::create_directories(folder.path() / name);
  for (const std::string command :
       {"encode run test --out dir.npy", "score run test --samples 10 --out dir.npy", "sample run --out dir.png"})
    expect_error(command, "is a folder; expected the name of a file");
  expect_error("check run", "run: this is a folder of hone train; expected one of hone fit. 'hone eval run' evaluates");
  expect_error("summary run",
               "run: this is a folder of hone train; expected one of hone fit. 'hone eval run' evaluates");
  expect_error("encode run test --header yes", "--header is for files");
  expect_error("encode run test --draws 3", "--draws needs --refine");
  expect_error("encode run test --refine 3 --sd s.npy", "--sd writes the standard deviations of q");
  expect_error("encode run test --binarization threshold", "--binarization is for files");
  write_file(folder.path() / "z.csv", "0.5,0.5\n");
  expect_error("sample run --z z.csv --out ./z.csv", "--out: ./z.csv is the file of data itself");
  expect_error("encode run z.csv --out z.csv", "--out: z.csv is the file of data itself; choose another name");
  expect_error("encode run z.csv --out a.npy --sd z.csv", "--sd: z.csv is the file of data itself");
  std::string datum;
  for (int i = 0; i < 784; ++i) datum += i % 3 ? "0 " : "1 ";
  write_file(folder.path() / "bits.amat", datum + "\n");
  for (const std::string how : {"threshold", "stochastic"})
    expect_error("encode run bits.amat --binarization " + how,
                 "--binarization " + how + ": the values of bits.amat are zeros and ones already; leave it out");
  EXPECT_EQ(hone("encode run bits.amat --binarization none").code, 0);
  expect_error("sample run --z x.amat", "x.amat: expected points of 2 numbers, as many as z has, found 4");
  expect_error("sample run --between 0,100000", "100000 is no datum; expected numbers from 0 to");
  expect_error("sample run --between 3", "--between: expected two numbers of data");
  expect_error("sample run test", "DATA has no effect without --between");
  expect_error("sample run --z x.amat --mean --seed 2", "--seed has no effect with --mean and --z or --between");
  expect_error("score run test --ais-steps 5", "--ais-steps needs --method ais");
  expect_error("score run test --method ais --samples 50", "--samples needs --method importance");
  expect_error("export run", "missing argument: --format");
  expect_error("export run --format pickle", "pickle");
  expect_error("export run --format onnx --out c.toml", "c.toml: expected a folder");
}

// Sparse files: the disk holds little of them.
TEST_F(Use, DataLargerThanTheMemoryAreUsed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory is larger than the limit";
#endif
  constexpr std::uint64_t rows = 200'000, pixels = 784, header = 128, limit_in_kb = 120'000;
  std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (200000, 784), }";
  dictionary.resize(header - 11, ' ');
  std::string text = std::string("\x93NUMPY\x01\0v\0", 10) + dictionary + "\n";  // v: 118 characters follow
  ASSERT_EQ(text.size(), header);
  const float one = 1;
  text.append(reinterpret_cast<const char*>(&one), sizeof one);
  write_file(folder.path() / "x.npy", text);
  fs::resize_file(folder.path() / "x.npy", header + rows * pixels * sizeof one);  // 627 MB
  const std::string limited = "ulimit -d " + std::to_string(limit_in_kb) + "; \"$HONE\" ";
  for (const std::string command :
       {"encode run x.npy --sd s.npy --out z.npy", "reconstruct run x.npy --points 9000 --out x9.npy",
        "score run x.npy --points 60 --samples 10 --out s.csv"}) {
    const Outcome outcome = shell(limited + command + " --threads 2 --quiet");
    ASSERT_EQ(outcome.code, 0) << command << outcome.err;
  }
  EXPECT_EQ(fs::file_size(folder.path() / "z.npy"), header + rows * 2 * sizeof(double));
  // What comes late is checked before anything is written.
  const auto place = static_cast<std::streamoff>(header + (150'000 * pixels + 5) * sizeof one);
  const float two = 2;
  std::fstream file(folder.path() / "x.npy", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(place).write(reinterpret_cast<const char*>(&two), sizeof two);
  file.close();
  fs::remove(folder.path() / "z.npy");
  const Outcome outcome = shell(limited + "encode run x.npy --out z.npy --threads 2");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("datum 150000 has the value 2 at position 5"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(folder.path() / "z.npy"));
}

// until_lines LINES COMMAND SIGNAL: ends the command by the signal when so many lines are kept.
constexpr auto until = R"sh(
until_lines() {
  "$HONE" $2 & pid=$!
  while [ "$(cat s.csv.unfinished 2>/dev/null | wc -l)" -lt "$1" ]; do kill -0 $pid || exit 9; sleep 0.02; done
  kill -$3 $pid; wait $pid; echo $? >code
}
)sh";

TEST_F(Use, ScoringContinuesAfterAKill) {
  for (const std::string command : {"score run test --points 230 --method ais --ais-steps 800 --out s.csv",
                                    "score run test --points 230 --samples 3000 --sort --out s.csv"}) {
    ASSERT_EQ(hone(command + " --quiet --threads 2").code, 0);
    const std::string wanted = read("s.csv");
    fs::remove(folder.path() / "s.csv");
    const Outcome killed = shell(until + ("until_lines 54 '" + command + " --quiet --threads 1' KILL"));
    ASSERT_EQ(killed.code, 0) << killed.err;
    EXPECT_FALSE(fs::exists(folder.path() / "s.csv"));
    expect_error(command, "continue it with --resume, or remove the file");
    const auto with = [&](const std::string& part, const std::string& other) {
      std::string changed = command + " --resume";
      return changed.replace(changed.find(part), part.size(), other);
    };
    expect_error(with("230", "229"), "made with other settings");
    expect_error(with(" test ", " train "), "its scores belong to other data");
    // The end of what is there may be cut off.
    fs::resize_file(folder.path() / "s.csv.unfinished", fs::file_size(folder.path() / "s.csv.unfinished") - 3);
    const Outcome again = shell(until + ("until_lines 104 '" + command + " --resume --threads 2' INT"));
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(read("code"), "130\n");
    EXPECT_NE(again.err.find("the same command with --resume continues"), std::string::npos) << again.err;
    const Outcome done = hone(command + " --resume --threads 3");
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_NE(done.err.find("continuing after "), std::string::npos) << done.err;
    EXPECT_EQ(read("s.csv"), wanted);
    EXPECT_FALSE(fs::exists(folder.path() / "s.csv.unfinished"));
    fs::remove(folder.path() / "code");
  }
}

TEST_F(Use, ScoresOfAnotherModelAreNotContinued) {
  const std::string command = "score run test --points 150 --samples 3000 --out s.csv --resume";
  ASSERT_EQ(shell(until + ("until_lines 54 '" + command + " --threads 1' KILL")).code, 0);
  ASSERT_EQ(hone("train c.toml --out run --quiet --resume --iterations 70").code, 0);
  fs::remove(folder.path() / "code");
  expect_error(command, "s.csv.unfinished: its scores belong to another model");
  expect_error("score run test --resume", "--resume");
}

TEST_F(Use, ADamagedCheckpointIsNamedEvenWhenQuiet) {
  ASSERT_EQ(hone("train c.toml --out run --quiet --resume --iterations 70").code, 0);
  fs::resize_file(folder.path() / "run/checkpoint.safetensors", 100);
  const Outcome outcome = hone("encode run test --points 2 --quiet");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("checkpoint.safetensors"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace hone
