#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/scalar.hpp"
#include "hone/target/stan.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

std::string fake(const std::string& kind) { return std::string(HONE_FAKES "/libfake_") + kind + ".so"; }

// What a fake library counted.
int counted(const std::string& kind, const char* what) {
  void* const handle = dlopen(fake(kind).c_str(), RTLD_NOW | RTLD_NOLOAD);
  return static_cast<std::atomic<int>*>(dlsym(handle, what))->load();
}

std::string refusal(const std::filesystem::path& library, const std::filesystem::path& data = {}) {
  try {
    load_bridgestan(library, data);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

bool says(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

TEST(BridgeStan, ReadsNamesAndShape) {
  const auto posterior = load_bridgestan(fake("threads"));
  EXPECT_EQ(posterior->dimension(), 2);
  EXPECT_EQ(posterior->names(), (std::vector<std::string>{"mu", "tau", "twice_tau", "noise"}));
  EXPECT_EQ(posterior->coordinate_names(), (std::vector<std::string>{"mu", "tau"}));
  EXPECT_EQ(posterior->parameter_count(), 2u);
}

TEST(BridgeStan, EvaluatesTheNormalisedDensityOfTheCoordinates) {
  const auto posterior = load_bridgestan(fake("threads"));
  Matrix<double> z(2, 4), gradient(2, 4);
  const double points[4][2] = {{0.3, -0.2}, {5.5, 0}, {-5.5, 0}, {1, 1}};
  for (int c = 0; c < 4; ++c) z(0, c) = points[c][0], z(1, c) = points[c][1];
  std::vector<double> value(4), alone(4);
  posterior->evaluate(z, Want::both, value, gradient);
  posterior->evaluate(z, Want::value, alone, {});
  EXPECT_EQ(value, alone);
  EXPECT_NEAR(value[0], -0.5 * 0.09 - 0.5 * log_two_pi - std::exp(-0.2) - 0.2, 1e-14);
  EXPECT_EQ(value[1], -infinity);  // the model throws
  EXPECT_EQ(value[2], -infinity);
  EXPECT_NEAR(gradient(0, 3), -1, 1e-14);
  EXPECT_NEAR(gradient(1, 3), 1 - std::exp(1), 1e-14);
  EXPECT_EQ(posterior->complaint(), "mu must not exceed 5 (in 'fake', line 7)");
  EXPECT_EQ(counted("threads", "fake_messages"), 0) << "messages must be given back to the library";
}

TEST(BridgeStan, NaturalValuesAreNanWhereTheirBlockThrows) {
  const auto posterior = load_bridgestan(fake("threads"));
  std::vector<double> natural(4), again(4);
  posterior->constrain(std::vector{0.5, 0.1}, natural);
  posterior->constrain(std::vector{0.5, 0.1}, again);
  EXPECT_EQ(natural, again) << "random numbers are a function of the point";
  EXPECT_EQ(natural[1], std::exp(0.1));
  EXPECT_EQ(natural[2], 2 * std::exp(0.1));
  posterior->constrain(std::vector{0.6, 0.1}, again);
  EXPECT_NE(natural[3], again[3]);
  posterior->constrain(std::vector{4.5, 0.1}, natural);
  EXPECT_EQ(natural[2], 2 * std::exp(0.1));
  EXPECT_TRUE(std::isnan(natural[3]));
  posterior->constrain(std::vector{0.5, 3.5}, natural);
  EXPECT_EQ(natural[1], std::exp(3.5));
  EXPECT_TRUE(std::isnan(natural[2]));
  EXPECT_TRUE(std::isnan(natural[3]));
  EXPECT_THROW(posterior->constrain(std::vector{200.0, 0.0}, natural), Error);
}

// The same bits for 1 and 2 threads; one call at a time where the library cannot do more; the gradient first.
TEST(BridgeStan, NaturalValuesComeBackToTheirCoordinates) {
  const auto posterior = load_bridgestan(fake("threads"));
  std::vector<double> natural(4), z(2);
  posterior->constrain(std::vector{0.5, -1.25}, natural);
  posterior->unconstrain(std::span(natural).first(2), z);
  EXPECT_DOUBLE_EQ(z[0], 0.5);
  EXPECT_DOUBLE_EQ(z[1], -1.25);
  const auto message = [&z](const Posterior& model, std::vector<double> values) -> std::string {
    try {
      model.unconstrain(values, z);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(*posterior, {0.5, -1}), "tau is not positive");
  EXPECT_NE(message(*load_bridgestan(fake("no_threads")), {0.5, 1}).find("no function bs_param_unconstrain"),
            std::string::npos);
}

TEST(BridgeStan, LibrariesWithAndWithoutThreadsAreCalledSafely) {
  for (const std::string kind : {"threads", "no_threads"}) {
    const auto posterior = load_bridgestan(fake(kind));
    EXPECT_EQ(stan_version(*posterior), std::string(kind) == "threads" ? "2.34.1" : "");
    const int points = 400;
    Matrix<double> z(2, points);
    for (int c = 0; c < points; ++c) z(0, c) = std::sin(c), z(1, c) = std::cos(c);
    std::vector<std::vector<double>> values, natural;
    for (const int threads : {1, 2, 4}) {
      values.emplace_back(points);
      natural.emplace_back(4 * points);
      Team team(threads);
      team.for_shares(points, [&](int begin, int end, int) {
        for (int c = begin; c < end; ++c) {
          posterior->evaluate(z.view().columns(c, c + 1), Want::value, {&values.back()[c], 1}, {});
          posterior->constrain(z.column(c), {&natural.back()[4 * c], 4});
        }
      });
      EXPECT_EQ(values.back(), values.front()) << kind << ", " << threads << " threads";
      EXPECT_EQ(natural.back(), natural.front()) << kind << ", " << threads << " threads";
    }
    EXPECT_EQ(counted(kind, "fake_without_tape"), 0) << kind;
    EXPECT_EQ(counted(kind, "fake_overlaps") > 0, kind == "threads");  // else nothing ran at the same time
  }
}

TEST(BridgeStan, RefusesWhatIsNotItsLibraryByName) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "text.so", "this is no library");
  EXPECT_TRUE(says(refusal(folder.path() / "absent.so"), "there is no such file"));
  EXPECT_TRUE(says(refusal(folder.path()), "there is no such file"));
  EXPECT_TRUE(says(refusal(folder.path() / "text.so"), "cannot be loaded as a shared library"));
  EXPECT_TRUE(says(refusal(fake("none")), "is not a BridgeStan library: it has none of BridgeStan's functions"));
  EXPECT_TRUE(says(refusal(fake("partly")), "it has no function bs_model_info"));
  EXPECT_TRUE(says(refusal(fake("version_1")), "was built for BridgeStan's version 1; expected version 2"));
  EXPECT_TRUE(says(refusal(fake("version_3")), "was built for BridgeStan's version 3; expected version 2"));
  EXPECT_TRUE(says(refusal(fake("empty")), "the model has no parameters"));
}

TEST(BridgeStan, RefusesDataByNameOfTheFile) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "data.json", "not JSON");
  write_file(folder.path() / "blank.json", " \n");
  write_file(folder.path() / "good.dat", "{}");
  const std::string json = "data.json: the model says: Error in JSON parsing at offset 0";
  for (const std::string kind : {"threads", "no_threads"})  // the first repeats the data, as BridgeStan did up to 2.6
    EXPECT_TRUE(refusal(fake(kind), folder.path() / "data.json").ends_with(json)) << kind;
  EXPECT_TRUE(says(refusal(fake("threads"), folder.path() / "blank.json"), "is empty"));
  EXPECT_TRUE(says(refusal(fake("threads"), folder.path() / "absent.json"), "absent.json: cannot be read"));
  EXPECT_NO_THROW(load_bridgestan(fake("threads"), folder.path() / "good.dat"));
  EXPECT_TRUE(says(refusal(fake("needs_data")), "was given no data (--data FILE.json) and says: variable does not"));
  EXPECT_NO_THROW(load_bridgestan(fake("needs_data"), folder.path() / "good.dat"));
}

}  // namespace
}  // namespace hone
