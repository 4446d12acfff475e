// hone encode, reconstruct, sample, score and export as a user runs them.

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
        "sample run --between 1,2 -n 600 --out z.npy", "score run test --points 60 --samples 20 --out z.csv",
        "score run test --points 60 --method ais --ais-steps 10 --out z.csv"}) {
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

TEST_F(Use, BadInputIsRefusedAndNothingIsWritten) {
  write_file(folder.path() / "x.amat", "0 1 1 0\n1 1 0 0\n");
  expect_error("encode", "missing argument: run");
  expect_error("encode nowhere test", "nowhere: not the folder of a training run");
  expect_error("encode run", "missing argument: data");
  expect_error("encode run x.amat", "x.amat: a datum has 4 values and the model 784");
  expect_error("encode run none.npy", "none.npy");
  expect_error("encode run test --out z.txt", "z.txt: expected a name that ends in .npy or .csv");
  expect_error("encode run test --out no/z.npy", "no/z.npy: cannot be written");
  expect_error("encode run test --draws 3", "--draws needs --refine");
  expect_error("encode run test --refine 3 --sd s.npy", "--sd writes the standard deviations of q");
  expect_error("encode run test --binarization threshold", "--binarization is for files");
  expect_error("sample run --z x.amat", "x.amat: expected points of 2 numbers, as many as z has, found 4");
  expect_error("sample run --between 0,100000", "100000 is no datum; expected numbers from 0 to");
  expect_error("sample run --between 3", "--between: expected two numbers of data");
  expect_error("sample run test", "DATA has no effect without --between");
  expect_error("score run test --ais-steps 5", "--ais-steps needs --method ais");
  expect_error("score run test --method ais --samples 50", "--samples needs --method importance");
  expect_error("export run", "missing argument: --format");
  expect_error("export run --format pickle", "pickle");
  expect_error("export run --format onnx --out c.toml", "c.toml: expected a folder");
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
