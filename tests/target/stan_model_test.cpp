// Stan programs, translated and compiled with what is installed: the Stan that tests/end_to_end/stan_install.sh puts
// into HONE_STAN_CACHE, if PyPI could be reached, and R's. Compiled models stay in HONE_STAN_CACHE, so that only the
// first run waits for the compiler.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <future>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/format.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/random.hpp"
#include "hone/base/scalar.hpp"
#include "hone/target/stan.hpp"
#include "hone/target/stan_data.hpp"
#include "hone/target/stan_translator.hpp"
#include "tests/support/posteriors.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Posterior> load_known(const test::KnownPosterior& known) {
  return load_bridgestan(compile_stan(test::known_program(known), {HONE_STAN_CACHE, {}, {}, {}}),
                         test::known_file(known, "data.json"));
}

void set_variable(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

// Sets an environment variable until the end of the test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old, had_ = true;
    set_variable(name, value);
  }
  ~Variable() { had_ ? set_variable(name_, old_) : void(::unsetenv(name_)); }

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

// Hides the Stan of the user's cache until the end of the test.
struct NoUserCache {
  test::TemporaryFolder folder;
  Variable cache{"XDG_CACHE_HOME", folder.path().string()};
};

bool has_todays_stan() { return find_httpstan({HONE_STAN_CACHE, {}, {}, {}}).has_value(); }
#define NEEDS_TODAYS_STAN() \
  if (!has_todays_stan())   \
  GTEST_SKIP() << "today's Stan is not installed in " HONE_STAN_CACHE ": pip could not reach httpstan"

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

bool says(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

// The Stan program and the C++ density: the same up to a constant, the same gradient and the same natural values.
void expect_same(const Posterior& stan, const Posterior& ours, std::uint32_t seed) {
  ASSERT_EQ(stan.dimension(), ours.dimension());
  EXPECT_EQ(stan.names(), ours.names());
  EXPECT_EQ(stan.coordinate_names(), ours.coordinate_names());
  EXPECT_EQ(stan.parameter_count(), ours.parameter_count());
  const int points = 20, dimension = stan.dimension();
  Matrix<double> z(dimension, points), slope_stan(dimension, points), slope_ours(dimension, points);
  PhiloxSource(seed).normals({Purpose::start}, z.view().flat());
  std::vector<double> value_stan(points), value_ours(points), natural_stan(stan.names().size()),
      natural_ours(stan.names().size());
  stan.evaluate(z, Want::both, value_stan, slope_stan);
  ours.evaluate(z, Want::both, value_ours, slope_ours);
  for (int c = 0; c < points; ++c) {
    const double shift = value_stan[c] - value_ours[c], first = value_stan[0] - value_ours[0];
    EXPECT_NEAR(shift, first, 1e-9 * (1 + std::abs(value_stan[c]))) << "point " << c;
    for (int i = 0; i < dimension; ++i)
      EXPECT_NEAR(slope_stan(i, c), slope_ours(i, c), 1e-8 * (1 + std::abs(slope_ours(i, c))))
          << stan.coordinate_names()[i] << " at point " << c;
    stan.constrain(z.column(c), natural_stan);
    ours.constrain(z.column(c), natural_ours);
    for (std::size_t i = 0; i < natural_stan.size(); ++i)
      EXPECT_NEAR(natural_stan[i], natural_ours[i], 1e-12 * (1 + std::abs(natural_ours[i]))) << stan.names()[i];
  }
}

class StanPrograms : public testing::TestWithParam<std::string> {};

TEST_P(StanPrograms, AgreeWithTheCppDensity) {
  for (const test::KnownPosterior& known : test::known_posteriors())
    if (known.program == GetParam()) expect_same(*load_known(known), *test::make_known(known), 31);
}

// With HONE_ALL_STAN set, all nine (four minutes of compiling); else three that cover arrays, several declarators,
// transformed data and parameters, ordered vectors and bounds that are parameters.
std::vector<std::string> compared() {
  std::vector<std::string> programs;
  for (const test::KnownPosterior& known : test::known_posteriors()) {
    const bool chosen =
        known.program == "eight_schools_noncentered" || known.program == "kidiq" || known.program == "garch";
    if (chosen || std::getenv("HONE_ALL_STAN")) programs.push_back(known.program);
  }
  return programs;
}
INSTANTIATE_TEST_SUITE_P(Some, StanPrograms, testing::ValuesIn(compared()),
                         [](const auto& instance) { return instance.param; });

// Includes, −∞ regions, points at which it throws, a matrix, a simplex, empty data, generated quantities.
const char* odd_program = R"(functions {
#include odd_functions.stan
}
data {
  int<lower=0> N;
  matrix[N, 2] x;
  array[2, 3] real table;
}
parameters {
  real a;
  matrix[2, 2] m;
  simplex[3] s;
}
model {
  if (a > 3) reject("a is too large: ", a);
  if (a < -3) target += negative_infinity();
  a ~ normal(0, 1);
  to_vector(m) ~ std_normal();
  s ~ dirichlet(rep_vector(2, 3));
  target += table[1, 3] - table[2, 1];
}
generated quantities {
  real noise = normal_rng(twice(a), 1);
}
)";

enum class Route { todays, rstan };

class OddModel : public testing::TestWithParam<Route> {
 protected:
  void SetUp() override {
    if (GetParam() == Route::todays) NEEDS_TODAYS_STAN();
    write_file(folder_.path() / "odd-model.stan", odd_program);
    write_file(folder_.path() / "odd_functions.stan", "real twice(real x) {\n  return 2 * x;\n}\n");
    library_ = compile_stan(folder_.path() / "odd-model.stan", {cache_, {}, {}, {}});
  }
  std::unique_ptr<Posterior> load(const std::string& data) {
    write_file(folder_.path() / "data.json", data);
    return load_bridgestan(library_, folder_.path() / "data.json");
  }
  std::string refused(const std::string& data) {
    return refusal([&] { load(data); });
  }
  NoUserCache hidden_;
  const fs::path cache_ = GetParam() == Route::todays ? HONE_STAN_CACHE : HONE_STAN_CACHE "/rstan";
  test::TemporaryFolder folder_;
  fs::path library_;
  const std::string good_ = R"({"N": 0, "x": [], "table": [[1, 2, 30], [4, 5, 6]]})";
};

TEST_P(OddModel, ThrowsAndMinusInfinityAreOutsideTheSupport) {
  const auto posterior = load(good_);
  EXPECT_EQ(posterior->dimension(), 1 + 4 + 2);
  EXPECT_EQ(posterior->names()[2], "m.2.1");
  EXPECT_EQ(posterior->parameter_count(), 8u);
  const int dimension = posterior->dimension();
  Matrix<double> z(dimension, 3), gradient(dimension, 3);
  z(0, 0) = 4, z(0, 1) = -4, z(0, 2) = 0;
  std::vector<double> value(3), alone(3);
  posterior->evaluate(z, Want::both, value, gradient);
  posterior->evaluate(z, Want::value, alone, {});
  EXPECT_EQ(value[0], -infinity);
  EXPECT_EQ(value[1], -infinity);
  // Five standard normals at 0; Dirichlet(2, 2, 2) at 1/3 has density Γ(6)/27; the Jacobian of the simplex is there
  // 1/27 by sticks that break (2.21), √3/27 by isometric log ratios (today).
  const double jacobian = (GetParam() == Route::todays ? std::sqrt(3.0) : 1.0) / 27;
  const double expected = -2.5 * log_two_pi + std::log(120.0 / 27) + std::log(jacobian) + 30 - 4;
  EXPECT_NEAR(value[2], expected, 1e-12);
  EXPECT_NEAR(alone[2], expected, 1e-12);
  EXPECT_TRUE(says(posterior->complaint(), "a is too large: 4")) << posterior->complaint();
}

TEST_P(OddModel, SameBitsForAnyNumberOfThreads) {
  const auto posterior = load(good_);
  const int points = 200, dimension = posterior->dimension(), values = static_cast<int>(posterior->names().size());
  Matrix<double> z(dimension, points);
  PhiloxSource(5).normals({Purpose::start}, z.view().flat());
  std::vector<std::vector<double>> all;
  for (const int threads : {1, 2, 4}) {
    Matrix<double> gradient(dimension, points), natural(values, points);
    std::vector<double> value(points);
    Team(threads).for_shares(points, [&](int begin, int end, int) {
      posterior->evaluate(z.view().columns(begin, end), Want::both, {&value[begin], std::size_t(end - begin)},
                          gradient.view().columns(begin, end));
      for (int c = begin; c < end; ++c) posterior->constrain(z.column(c), natural.column(c));
    });
    const auto slopes = gradient.view().flat(), naturals = natural.view().flat();
    value.insert(value.end(), slopes.begin(), slopes.end());
    value.insert(value.end(), naturals.begin(), naturals.end());
    all.push_back(value);
    EXPECT_EQ(all.back(), all.front()) << threads << " threads";
  }
}

TEST_P(OddModel, DataThatDoNotFitAreNamed) {
  EXPECT_TRUE(says(refused("not JSON"), "data.json: the model says: data: line 1: not JSON"));
  EXPECT_TRUE(says(refused("{\"N\": 0,\n \"x\": [1, }"), "line 2, key 'x': expected a number"));
  EXPECT_TRUE(says(refused("{\"N\": 0, \"N\": 1}"), "key 'N': the key stands twice"));
  EXPECT_TRUE(says(refused("{\"N\": \"many\"}"), "key 'N': expected a number"));
  EXPECT_TRUE(says(refused("{\"N\": [[1], 2]}"), "key 'N': a number stands where an array was expected"));
  EXPECT_TRUE(says(refused("{\"N\": [1, [2]]}"), "key 'N': an array stands where a number was expected"));
  EXPECT_TRUE(says(refused("{\"N\": [[1, 2], [3]]}"), "key 'N': the array is not rectangular"));
  EXPECT_TRUE(says(refused("{\"N\": " + std::string(5000, '[') + "}"), "key 'N': arrays are nested too deeply"));
  EXPECT_TRUE(says(refused("{\"N\": 0, \"x\": []}"), "variable does not exist"));
  EXPECT_TRUE(says(refused("{\"N\": 0, \"x\": []}"), "variable name=table"));
  EXPECT_TRUE(says(refused("{\"N\": 0.5}"), "int variable contained non-int values"));
  EXPECT_TRUE(says(refused("{\"N\": -1}"), "N is -1, but must be greater than or equal to 0"));
  EXPECT_TRUE(
      says(refused(R"({"N": 1, "x": [[1, 2]], "table": [[1, 2], [3, 4]]})"), "dims declared=(2,3); dims found=(2,2)"));
  EXPECT_TRUE(says(refusal([&] { load_bridgestan(library_); }), "was given no data (--data FILE.json) and says: "));
  EXPECT_NO_THROW(load(R"({"N": 1, "x": [[1, 2]], "table": [[1, 2, "NaN"], [Infinity, 4, -Infinity]], "more": 3})"));
}

TEST_P(OddModel, TheSecondTimeNothingIsCompiled) {
  const auto before = fs::last_write_time(library_);
  const StanOptions options{cache_, [](const std::string& step) { ADD_FAILURE() << step; }, {}, {}};
  EXPECT_EQ(compile_stan(folder_.path() / "odd-model.stan", options), library_);
  EXPECT_EQ(fs::last_write_time(library_), before);
  write_file(folder_.path() / "odd_functions.stan", "real twice(real x) {\n  return 3 * ;\n}\n");
  EXPECT_TRUE(says(refusal([&] {
                     compile_stan(folder_.path() / "odd-model.stan", {cache_, {}, {}, {}});
                   }),
                   "odd_functions.stan:2: the program cannot be translated"));
}

// Also where the declarations beside the library are missing, as with one that was compiled before they were kept.
TEST_P(OddModel, DataAreCheckedThoughTheLibraryIsInTheCache) {
  if (GetParam() == Route::rstan) GTEST_SKIP() << "R's translation does not show what data it declares";
  const StanOptions options{cache_, {}, folder_.path() / "data.json", {}};
  const fs::path declared = fs::path(library_).replace_extension(".data");
  for (const bool there : {true, false}) {
    if (!there) fs::remove(declared);
    write_file(options.data, R"({"N": 2, "x": [[1, 2]], "table": [[1, 2, 3], [4, 5, 6]]})");
    const std::string refused = refusal([&] { compile_stan(folder_.path() / "odd-model.stan", options); });
    EXPECT_TRUE(says(refused, "data.json: variable 'x' of the data block is declared as an array of size (N, 2), but"))
        << refused;
    write_file(options.data, R"({"N": 1, "x": [[1, 2]], "table": [[1, 2, 3], [4, 5, 6]]})");
    EXPECT_EQ(compile_stan(folder_.path() / "odd-model.stan", options), library_);
    EXPECT_TRUE(fs::exists(declared));
  }
}

INSTANTIATE_TEST_SUITE_P(Both, OddModel, testing::Values(Route::todays, Route::rstan),
                         [](const auto& instance) { return instance.param == Route::todays ? "todays" : "rstan"; });

TEST(StanModel, ATranslatorsMessageHasFileAndLine) {
  const NoUserCache hidden;
  const test::TemporaryFolder folder;
  write_file(folder.path() / "bad.stan", "parameters {\n  real a, b;\n}\nmodel {\n  a ~ nomal(b, 1);\n}\n");
  const std::string message = refusal([&] {
    compile_stan(folder.path() / "bad.stan", {folder.path() / "cache", {}, {}, {}});
  });
  EXPECT_TRUE(says(message, "bad.stan:5: the program cannot be translated by Stan 2.21")) << message;
  EXPECT_TRUE(says(message, "nomal")) << message;
  EXPECT_TRUE(says(message, "built by a newer BridgeStan (model.so)")) << message;
  for (const auto& entry : fs::directory_iterator(folder.path() / "cache"))
    EXPECT_EQ(entry.path().extension(), ".lock") << "half-made files must not stay";
  write_file(folder.path() / "empty.stan", "\n");
  EXPECT_TRUE(says(refusal([&] { compile_stan(folder.path() / "empty.stan"); }), "empty.stan: is empty"));
  EXPECT_TRUE(says(refusal([&] { compile_stan(folder.path() / "no.stan"); }), "no.stan: cannot be read"));
}

TEST(StanModel, WhatIsMissingIsSaidWithItsCommand) {
  const NoUserCache hidden;
  const test::TemporaryFolder folder;
  write_file(folder.path() / "model.stan", "parameters {\n  real a;\n}\nmodel {\n  a ~ normal(0, 1);\n}\n");
  const auto message = [&] {
    return refusal([&] { compile_stan(folder.path() / "model.stan", {folder.path() / "cache", {}, {}, {}}); });
  };
  const std::string command = "apt-get install --no-install-recommends r-cran-rstan g++";
  {
    const Variable compiler("CXX", "no-such-compiler");
    EXPECT_TRUE(says(message(), "the compiler no-such-compiler is missing")) << message();
    EXPECT_TRUE(says(message(), command));
  }
  {
    const Variable path("PATH", folder.path().string());
    const Variable compiler("CXX", "/usr/bin/g++");
    EXPECT_TRUE(says(message(), "Rscript is not found")) << message();
    EXPECT_TRUE(says(message(), command));
  }
  {
    const Variable bridgestan("BRIDGESTAN", folder.path().string());
    EXPECT_TRUE(says(message(), "is not a folder of BridgeStan")) << message();
  }
  {
    const Variable home("HOME", ""), cache("XDG_CACHE_HOME", "");
    EXPECT_TRUE(says(refusal([&] { compile_stan(folder.path() / "model.stan"); }), "set XDG_CACHE_HOME or HOME"));
  }
}

// A folder with BridgeStan's makefile interface, whose "translator" wants parameters and whose "compiler" copies a
// library.
class BridgeStanFolder : public testing::Test {
 protected:
  BridgeStanFolder() {
    write_file(folder_.path() / "Makefile", R"(
named = $(patsubst --filename-in-msg=%,%,$(filter --filename-in-msg=%,$(STANCFLAGS)))
%.hpp: %.stan
	@echo '--- Translating Stan model to C++ code ---'
	@grep -q parameters $< || { echo "Syntax error in '$(named)', line 1, column 0"; exit 1; }
	cp $< $@
%_model.so: %.hpp
	@echo '--- Compiling C++ code ---'
	@echo $(STAN_THREADS) $(named) >> calls
	@! grep -q endless $< || { sleep 60 & sleep 60; }
	@! grep -q nonsense $< || { echo "$<:1: error: out of memory at line 7"; exit 1; }
	cp )" HONE_FAKES "/libfake_threads.so $@\n");
  }

  // A program of this text, compiled.
  fs::path compile(const std::string& name, const std::string& text) const {
    write_file(folder_.path() / name, text);
    return compile_stan(folder_.path() / name, options_);
  }

  NoUserCache hidden_;
  test::TemporaryFolder folder_;
  Variable bridgestan_{"BRIDGESTAN", folder_.path().string()};
  StanOptions options_{folder_.path() / "cache", {}, {}, {}};
};

TEST_F(BridgeStanFolder, IsUsedFirstAndOnlyOnce) {
  const std::string text = "parameters { array[2] real a; }\n";
  write_file(folder_.path() / "my model.stan", text);
  auto other = std::async(std::launch::async, [&] { return compile_stan(folder_.path() / "my model.stan", options_); });
  const fs::path library = compile_stan(folder_.path() / "my model.stan", options_);
  EXPECT_EQ(other.get(), library);
  EXPECT_EQ(library.parent_path(), folder_.path() / "cache");
  EXPECT_EQ(read_file(folder_.path() / "calls"), "true my_model.stan\n") << "one of the two waits for the other";
  EXPECT_EQ(load_bridgestan(library)->dimension(), 2);
}

TEST_F(BridgeStanFolder, WhatAKilledProcessLeftIsRemoved) {
  const std::string text = "parameters { real a; }\n";
  const fs::path library = compile("model.stan", text), other = options_.cache / "other.so.making-123456";
  fs::remove(library);
  fs::create_directories(fs::path(library) += ".making-abcdef/more");
  fs::create_directories(other);
  EXPECT_EQ(compile("model.stan", text), library);
  EXPECT_FALSE(fs::exists(fs::path(library) += ".making-abcdef"));
  EXPECT_TRUE(fs::exists(other)) << "somebody else may be at work there";
}

TEST_F(BridgeStanFolder, FailuresAreToldAsWhatTheyAre) {
  const Variable level("MAKELEVEL", "1");  // as if a makefile ran hone; its level must not show in messages
  const std::string folder = fs::canonical(folder_.path()).string();
  EXPECT_EQ(
      refusal([&] { compile("wrong.stan", "nothing\n"); }),
      detail::format("{}/wrong.stan:1: the program cannot be translated by BridgeStan in {}:\n"
                     "Syntax error in 'wrong.stan', line 1, column 0\n"
                     "If the program is right for a newer Stan, set BRIDGESTAN to the folder of a newer BridgeStan.",
                     folder, folder));
  try {
    compile("long.stan", "parameters { nonsense }\n");
    ADD_FAILURE() << "it was compiled";
  } catch (const Error& error) {
    EXPECT_TRUE(says(error.what(), "long.stan: its translation does not compile (BridgeStan in")) << error.what();
    EXPECT_TRUE(says(error.what(), "error: out of memory")) << error.what();
  }
}

TEST_F(BridgeStanFolder, AStopEndsTheCompilerAndLeavesNothing) {
  const auto calls = folder_.path() / "calls";  // written just before the compiler begins its endless work
  options_.stop = [&] { return fs::exists(calls); };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(compile("slow.stan", "parameters { endless }\n"), Stopped);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  for (const auto& entry : fs::directory_iterator(options_.cache)) EXPECT_EQ(entry.path().extension(), ".lock");
}

TEST_F(BridgeStanFolder, DataThatAreNoJsonAreRefusedBeforeTheCompilerRuns) {
  write_file(folder_.path() / "data.json", "{\"N\": 1,\n \"x\": [1, ]}");
  options_.data = folder_.path() / "data.json";
  EXPECT_TRUE(says(refusal([&] { compile("model.stan", "parameters { real a; }\n"); }),
                   "data.json: line 2, key 'x': expected a number"));
  EXPECT_FALSE(fs::exists(folder_.path() / "calls"));
}

// What Stan 2.21 does not know: tuples (of data too), reduce_sum, ode_rk45, sum_to_zero_vector, declarations anywhere.
const char* todays_program = R"(functions {
  real part_lpdf(array[] real slice, int start, int end, real mu) {
    return normal_lupdf(slice | mu, 1);
  }
  vector decay(real time, vector x, real rate) {
    return -rate * x;
  }
}
data {
  int<lower=0> N;
  array[N] real y;
  tuple(real, vector[2]) prior;
  array[2] tuple(int, real) pairs;
}
parameters {
  real mu;
  sum_to_zero_vector[3] s;
}
transformed parameters {
  print("mu = ", mu);
  real left = ode_rk45_tol(decay, [1]', 0, {2.0}, 1e-9, 1e-9, 10000, mu)[1, 1];
}
model {
  mu ~ normal(prior.1, prior.2[2]);
  target += reduce_sum(part_lupdf, y, 1, mu);
  s ~ normal(0, 1);
  target += pairs[2].1 * pairs[1].2;
}
)";

TEST(TodaysStan, KnowsWhatIsNewSince2020) {
  NEEDS_TODAYS_STAN();
  const test::TemporaryFolder folder;
  write_file(folder.path() / "todays.stan", todays_program);
  write_file(
      folder.path() / "data.json",
      R"({"N": 3, "y": [1, 2, 4.5], "prior": {"1": 0.5, "2": [9, 2]}, "pairs": [{"1": 1, "2": 0.25}, {"1": 3, "2": 7}]})");
  const StanOptions options{HONE_STAN_CACHE, {}, folder.path() / "data.json", {}};
  const auto posterior = load_bridgestan(compile_stan(folder.path() / "todays.stan", options), options.data);
  const std::vector<std::string> names = {"mu", "s.1", "s.2", "s.3", "left"};
  EXPECT_EQ(posterior->names(), names);
  ASSERT_EQ(posterior->dimension(), 3);
  Matrix<double> z(3, 40), gradient(3, 40);
  PhiloxSource(8).normals({Purpose::start}, z.view().flat());
  std::vector<double> value(40), x(5);
  Team(2).for_shares(40, [&](int begin, int end, int) {
    posterior->evaluate(z.view().columns(begin, end), Want::both, {&value[begin], std::size_t(end - begin)},
                        gradient.view().columns(begin, end));
  });
  for (int c = 0; c < 40; ++c) {
    posterior->constrain(z.column(c), x);
    const double mu = z(0, c), off = (mu - 0.5) / 2;
    EXPECT_EQ(x[0], mu);
    EXPECT_NEAR(x[1] + x[2] + x[3], 0, 1e-14);
    EXPECT_NEAR(x[4], std::exp(-2 * mu), 1e-7 * (1 + std::exp(-2 * mu)));
    double expected = -3.5 * log_two_pi - 0.5 * off * off - std::log(2.0) + 3 * 0.25, slope = -off / 2;
    for (const double y : {1.0, 2.0, 4.5}) expected -= 0.5 * (y - mu) * (y - mu), slope += y - mu;
    for (int j = 1; j <= 3; ++j) expected -= 0.5 * x[j] * x[j];  // the transform is isometric: no Jacobian
    EXPECT_NEAR(value[c], expected, 1e-12 * (1 + std::abs(expected)));
    EXPECT_NEAR(gradient(0, c), slope, 1e-12 * (1 + std::abs(slope)));
  }
}

TEST(TodaysStan, DataAreCheckedBeforeTheCompilerRuns) {
  NEEDS_TODAYS_STAN();
  const test::TemporaryFolder folder;
  write_file(folder.path() / "never.stan", todays_program);
  const Variable compiler("CXX", "true");  // it must not be needed
  const StanOptions options{HONE_STAN_CACHE, {}, folder.path() / "data.json", {}};
  const auto refused = [&](const std::string& y, const std::string& prior) {
    write_file(options.data, "{\"N\": 3, " + y + prior + "\"pairs\": [{\"1\": 1, \"2\": 1}, {\"1\": 1, \"2\": 1}]}");
    return refusal([&] { compile_stan(folder.path() / "never.stan", options); });
  };
  const std::string y = "\"y\": [1, 2, 3], ", prior = "\"prior\": {\"1\": 0, \"2\": [1, 1]}, ";
  StanOptions none;
  none.cache = HONE_STAN_CACHE;
  none.no_data = true;
  EXPECT_TRUE(says(refusal([&] { compile_stan(folder.path() / "never.stan", none); }),
                   "the model was given no data (--data FILE.json), but its data block declares"));
  EXPECT_TRUE(says(refused("", prior), "data.json: variable 'y' of the data block is not in the data"));
  EXPECT_TRUE(says(refused("\"y\": 1, ", prior),
                   "'y' of the data block is declared as an array of size (N), but the data "
                   "hold a single number"));
  EXPECT_TRUE(says(refused("\"y\": [1, 2], ", prior), "an array of size (N), but the data hold an array of size (2)"));
  EXPECT_TRUE(says(refused(y, ""), "'prior.1' of the data block is not in the data"));
  EXPECT_TRUE(says(refused(y, "\"prior\": {\"1\": 0, \"3\": 1}, "), "key 'prior': expected the tuple's key \"2\""));
  write_file(folder.path() / "bounded.stan",
             "data { real<lower=0> s0; int N; vector<lower=-1.5, upper=s0>[N] x; } parameters { real mu; } "
             "model { mu ~ normal(0, s0); }");
  const auto bounded = [&](const std::string& data) {
    write_file(options.data, data);
    return refusal([&] { compile_stan(folder.path() / "bounded.stan", options); });
  };
  EXPECT_TRUE(says(bounded(R"({"s0": -1, "N": 0, "x": []})"), "'s0' of the data block is -1; expected at least 0"));
  EXPECT_TRUE(says(bounded(R"({"s0": 2, "N": 2, "x": [0, 2.5]})"),
                   "'x' of the data block is 2.5 at [2]; expected at most s0, which is 2"));
  EXPECT_TRUE(says(bounded(R"({"s0": 2, "N": 2, "x": [-2, 0]})"), "is -2 at [1]; expected at least -1.5"));
}

TEST(TodaysStan, ATranslatorsMessageHasFileAndLine) {
  NEEDS_TODAYS_STAN();
  const test::TemporaryFolder folder;
  write_file(folder.path() / "bad.stan", "parameters {\n  real a, b;\n}\nmodel {\n  a ~ nomal(b, 1);\n}\n");
  const std::string message = refusal([&] { compile_stan(folder.path() / "bad.stan", {HONE_STAN_CACHE, {}, {}, {}}); });
  EXPECT_TRUE(says(message, "bad.stan:5: the program cannot be translated by Stan 2.")) << message;
  EXPECT_TRUE(says(message, "nomal")) << message;
}

}  // namespace
}  // namespace hone
