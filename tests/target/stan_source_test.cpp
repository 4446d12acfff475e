#include "hone/target/stan_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

// Text before and after; the number of lines is always the same.
void expect_rewritten(const std::string& before, const std::string& after) {
  const std::string result = to_stan_2_21(before);
  EXPECT_EQ(result, after);
  EXPECT_EQ(std::count(result.begin(), result.end(), '\n'), std::count(before.begin(), before.end(), '\n'));
}

TEST(StanSource, ArraysAreDeclaredAfterTheirName) {
  expect_rewritten("data {\n  array[N] real y;\n}", "data {\n  real y[N];\n}");
  expect_rewritten("{array[N, f(M, 2)] vector<lower=0>[K] x;}", "{vector<lower=0>[K] x[N, f(M, 2)];}");
  expect_rewritten("{array[2] int<lower=0, upper=(a > b)> k = {1, 2};}",
                   "{int<lower=0, upper=(a > b)> k[2] = {1, 2};}");
  expect_rewritten("{array[N,\n   M] // sizes\n  real x;\n}", "{\n\nreal x[N, M];\n}");
}

TEST(StanSource, ArraysOfArgumentsAndResults) {
  expect_rewritten("functions { array[] real f(array[,] vector x, data array[ , ] int k) {\n array[2] real y; } }",
                   "functions { real[] f(vector[,] x, data int[ , ] k) {\n real y[2]; } }");
}

TEST(StanSource, OneDeclarationAStatement) {
  expect_rewritten("{ vector[N] a, b, c; }", "{ vector[N] a; vector[N] b; vector[N] c; }");
  expect_rewritten("{ real x = f(1, 2), y = {3, 4}[1];\n int k; }",
                   "{ real x = f(1, 2); real y = {3, 4}[1];\n int k; }");
  expect_rewritten("{ array[2] real a, // first\n b; }", "{ real a[2]; real // first\n b[2]; }");
}

TEST(StanSource, UnnormalisedDensitiesBecomeNormalisedOnes) {
  expect_rewritten("{ target += normal_lupdf(y | 0, 1) + poisson_lupmf(k | 2); }",
                   "{ target += normal_lpdf(y | 0, 1) + poisson_lpmf(k | 2); }");
}

TEST(StanSource, LeavesTheRestAlone) {
  for (const char* text :
       {"/* array[N] real y; */ // array[2] real x, z;\n", "{ print(\"array[N] real a, b;\"); }",
        "functions { real f(real x, real y) { return x; } }", "{ array[1] = 2; }",
        "{ for (n in 1 : N) y[n] ~ normal(mu[n], sigma); }", "{ real x; x = 3, }", "{ array[N real x;", "{ real x",
        "{ array[2] tuple(real, int) t; }", "{ int n = a < b ? 1 : 2; }"})
    EXPECT_EQ(to_stan_2_21(text), text);
}

TEST(StanSource, IncludesKeepTheirLines) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "main.stan",
             "/* of all\n#include nothing.stan\n*/\nfunctions {\n#include <part.stan>\n}\n");
  write_file(folder.path() / "part.stan", "real one() {\n  return 1;\n}");
  const StanSource source = read_stan(folder.path() / "main.stan");
  EXPECT_EQ(source.text, "/* of all\n#include nothing.stan\n*/\nfunctions {\nreal one() {\n  return 1;\n}\n}\n");
  EXPECT_EQ(source.origin(6).file.filename(), "part.stan");
  EXPECT_EQ(source.origin(6).line, 2);
  EXPECT_EQ(source.origin(8).file.filename(), "main.stan");
  EXPECT_EQ(source.origin(8).line, 6);
  EXPECT_EQ(source.origin(99).line, 6);
}

TEST(StanSource, RefusesIncludesThatAreMissingOrGoInCircles) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "main.stan", "\n#include \"absent.stan\"\n");
  write_file(folder.path() / "circle.stan", "#include circle.stan\n");
  const auto refusal = [&](const char* name) -> std::string {
    try {
      read_stan(folder.path() / name);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  EXPECT_NE(refusal("main.stan").find("main.stan:2: the file to include, absent.stan"), std::string::npos);
  EXPECT_NE(refusal("circle.stan").find("circle.stan:1: circle.stan includes itself"), std::string::npos);
  EXPECT_NE(refusal("none.stan").find("none.stan: cannot be read"), std::string::npos);
}

TEST(StanSource, BinaryFilesAreRefusedWithoutTheirBytes) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "a.stan", std::string("data {\n  int n;\x1b[2J\n}\n"));
  try {
    read_stan(folder.path() / "a.stan");
    FAIL();
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("a.stan:2: a byte of value 27"), std::string::npos) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace hone
