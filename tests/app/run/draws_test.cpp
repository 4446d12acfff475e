#include "app/run/draws.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/process.hpp"
#include "hone/base/random.hpp"
#include "hone/tensor/vectors.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

DrawTable some_draws(std::uint32_t seed) {
  DrawTable draws;
  draws.names = {"mu", "K.1.1", "K.2.1", "K.1.2", "K.2.2", "K.1.3", "K.2.3", "theta.1", "theta.2"};
  draws.values = Matrix<double>(9, 12);
  PhiloxSource(seed).normals({Purpose::start}, draws.values.view().flat());
  draws.log_p.resize(12);
  draws.log_q.resize(12);
  PhiloxSource(seed).normals({Purpose::start, 1}, draws.log_p);
  PhiloxSource(seed).normals({Purpose::start, 2}, draws.log_q);
  return draws;
}

TEST(GroupNames, PutsElementsTogetherTheLastIndexFastest) {
  const auto arrays = group_names(some_draws(1).names);
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_EQ(arrays[0].name, "mu");
  EXPECT_TRUE(arrays[0].dims.empty());
  EXPECT_EQ(arrays[1].name, "K");
  EXPECT_EQ(arrays[1].dims, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(arrays[1].entries, (std::vector<std::size_t>{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(arrays[2].entries, (std::vector<std::size_t>{7, 8}));
}

TEST(GroupNames, LeavesWhatIsNoRectangleAlone) {
  const auto names_of = [](const std::vector<std::string>& names) {
    std::vector<std::string> result;
    for (const NamedVariable& array : group_names(names)) result.push_back(array.name);
    return result;
  };
  for (const std::vector<std::string>& names : {std::vector<std::string>{"a.1", "a.3"},
                                                {"a", "a.1"},
                                                {"a.1", "a.1"},
                                                {"a.x", "a.y"},
                                                {"a.0"},
                                                {"a."},
                                                {"a.1.1", "a.2"},
                                                {"a.99999999999999999999"},
                                                {"a.4000000000.4000000000"},
                                                {"t:1", "t:2"}})
    EXPECT_EQ(names_of(names), names);
}

TEST(StanCsv, IsReadBackToTheLastBit) {
  const test::TemporaryFolder folder;
  DrawTable draws = some_draws(2);
  draws.values(0, 3) = std::nan("");
  draws.log_q[5] = -INFINITY;
  write_stan_csv(folder.path() / "draws.csv", draws, {"seed = 3"}, "2.39.1");
  std::ifstream file(folder.path() / "draws.csv");
  std::string line, comments;
  while (std::getline(file, line) && line.starts_with("#")) comments += line + "\n";
  EXPECT_NE(comments.find("#     num_samples = 12\n"), std::string::npos);
  EXPECT_NE(comments.find("# seed = 3\n"), std::string::npos);
  EXPECT_TRUE(comments.starts_with("# stan_version_major = 2\n# stan_version_minor = 39\n# stan_version_patch = 1\n"))
      << comments;
  write_stan_csv(folder.path() / "unknown.csv", draws);
  EXPECT_TRUE(read_file(folder.path() / "unknown.csv")
                  .starts_with("# stan_version_major = 0\n# stan_version_minor = 0\n# stan_version_patch = 0\n"));
  EXPECT_EQ(line, "lp__,log_p__,log_q__,mu,K.1.1,K.2.1,K.1.2,K.2.2,K.1.3,K.2.3,theta.1,theta.2");
  int row = 0;
  for (; std::getline(file, line) && !line.starts_with("#"); ++row) {
    std::stringstream cells(line);
    std::vector<double> values;
    for (std::string cell; std::getline(cells, cell, ',');) values.push_back(std::strtod(cell.c_str(), nullptr));
    ASSERT_EQ(values.size(), 12u);
    EXPECT_EQ(values[0], draws.log_p[row]);
    EXPECT_EQ(values[1], draws.log_p[row]);
    EXPECT_EQ(values[2], draws.log_q[row]);
    EXPECT_EQ(std::isnan(values[3]), row == 3);
    for (int i = row == 3 ? 1 : 0; i < 9; ++i) EXPECT_EQ(values[3 + i], draws.values(i, row));
  }
  EXPECT_EQ(row, 12);
}

TEST(InferenceData, HasTheSameBitsEachTimeAndLeavesNothingHalfWritten) {
  const test::TemporaryFolder folder;
  const DrawTable refined = some_draws(3), q = some_draws(4);
  for (const char* name : {"a.nc", "b.nc"})
    write_inference_data(folder.path() / name, {refined, q, 2, {{"y", {2}, {1, 2}}}, {}, {{"model", "test"}}});
  EXPECT_EQ(read_file(folder.path() / "a.nc"), read_file(folder.path() / "b.nc"));
  EXPECT_THROW(write_inference_data(folder.path() / "c.nc", {refined, q, 5, {}, {}, {}}), InputError);
  EXPECT_THROW(write_inference_data(folder.path() / "no" / "c.nc", {refined, q, 2, {}, {}, {}}), Error);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) files += entry.is_regular_file();
  EXPECT_EQ(files, 2);
}

// A Python with Debian's packages; another Python may come first in PATH.
std::string python() {
  for (const char* program : {"python3", "/usr/bin/python3"})
    if (run_program({program, "-c", "import netCDF4, xarray"}).status == 0) return program;
  throw Error("no Python has netCDF4 and xarray: apt-get install python3-netcdf4 python3-xarray");
}

// Third-party readers: xarray and netCDF4 for the NetCDF file; ArviZ and CmdStanPy if installed.
TEST(InferenceData, OtherReadersSeeTheSameNumbers) {
  const test::TemporaryFolder folder;
  DrawTable refined = some_draws(5);
  const DrawTable q = some_draws(6);
  for (int i = 0; i < 12; ++i) refined.moves.push_back({0.05 * i, 1.5 * i, i == 7});
  for (int i = 0; i < 12; ++i) refined.short_chain.push_back(40 - i / 2);
  FitGroups groups;
  groups.log_likelihood = {"theta"};
  groups.observed_data = {"y"};
  groups.integers = {"y", "K"};  // K holds other numbers: it stays real
  write_inference_data(folder.path() / "fit.nc",
                       {refined, q, 3, {{"y", {2, 2}, {1, 2, 3, 4}}, {"N", {}, {7}}}, groups, {{"model", "test"}}});
  write_stan_csv(folder.path() / "draws.csv", refined);
  write_stan_csv(folder.path() / "draws_q.csv", q);
  const Finished finished =
      run_program({python(), HONE_SOURCE_DIR "/tests/app/run/read_draws.py", folder.path().string()});
  EXPECT_EQ(finished.status, 0) << finished.output;
  std::printf("%s", finished.output.c_str());
}

TEST(DataArrays, AreTheNumbersOfAJsonFile) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "data.json",
             R"({"N": 3,
                 "x": [[1, 2], [3, 4]], "name": "text", "ragged": [[1], [2, 3]], "none": [], "odd": [1, []]})");
  const auto arrays = read_data_arrays(folder.path() / "data.json");
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "N");
  EXPECT_EQ(arrays[1].dims, (std::vector<std::size_t>{2, 2}));
  EXPECT_EQ(arrays[1].values, (std::vector<double>{1, 2, 3, 4}));
  write_file(folder.path() / "data.json", "no JSON");
  EXPECT_TRUE(read_data_arrays(folder.path() / "data.json").empty());
}

TEST(WarmStart, WritesWhatCmdStanReads) {
  const test::TemporaryFolder folder;
  const DrawTable draws = some_draws(7);
  WarmStart start{
      .names = draws.names, .inits = Matrix<double>(9, 2), .inverse_metric = Matrix<double>(2, 2), .step_size = 0.5};
  copy(draws.values.view().columns(0, 2).flat(), start.inits.view().flat());
  start.inverse_metric(0, 0) = 4, start.inverse_metric(0, 1) = start.inverse_metric(1, 0) = 1;
  start.inverse_metric(1, 1) = 9;
  write_warm_start(folder.path() / "warm", start);
  const auto read = [&](const char* name) { return nlohmann::json::parse(read_file(folder.path() / "warm" / name)); };
  const auto second = read("inits_2.json");
  EXPECT_EQ(second["mu"], draws.values(0, 1));
  EXPECT_EQ(second["K"][1][2], draws.values(6, 1));
  EXPECT_EQ(second["K"][0][2], draws.values(5, 1));
  EXPECT_EQ(second["theta"].size(), 2u);
  EXPECT_EQ(read("metric.json"), nlohmann::json::parse(R"({"inv_metric": [[4.0, 1.0], [1.0, 9.0]]})"));
  const std::string words = read_file(folder.path() / "warm" / "arguments.txt");
  EXPECT_NE(words.find("num_chains=2 algorithm=hmc metric=dense_e"), std::string::npos) << words;
  EXPECT_NE(words.find("stepsize=0.5"), std::string::npos);
  start.inverse_metric = Matrix<double>(3, 1);
  write_warm_start(folder.path() / "warm", start);
  EXPECT_EQ(read("metric.json")["inv_metric"], (std::vector<double>{0, 0, 0}));
}

// As in CmdStan's manual: a tuple is an object with keys from 1, a complex number a pair.
TEST(WarmStart, TuplesAndComplexNumbersAreNestedAsStanReadsThem) {
  const test::TemporaryFolder folder;
  WarmStart start{{"pair:1", "pair:2.1", "pair:2.2", "many.1:1", "many.2:1", "many.1:2", "many.2:2", "z.1.real",
                   "z.1.imag", "a.0", "a:x", "a.2x", "a."},
                  Matrix<double>(13, 1),
                  Matrix<double>(1, 1),
                  0};
  for (int i = 0; i < 13; ++i) start.inits(i, 0) = i + 1;
  write_warm_start(folder.path(), start);
  EXPECT_EQ(nlohmann::json::parse(read_file(folder.path() / "inits_1.json")), nlohmann::json::parse(R"({
      "pair": {"1": 1, "2": [2, 3]}, "many": [{"1": 4, "2": 6}, {"1": 5, "2": 7}], "z": [[8, 9]], "a.0": 10, "a:x": 11,
      "a.2x": 12, "a.": 13
    })"));
}

}  // namespace
}  // namespace hone
