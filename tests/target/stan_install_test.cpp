// Installing Stan from a wheel, and checking data against a translation: nothing here needs Stan or the network.

#include <gtest/gtest.h>

#include <cstdlib>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/process.hpp"
#include "hone/target/stan.hpp"
#include "hone/target/stan_data.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

bool says(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

template <class Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

// A tiny wheel with the files that hone asks for, made by Python from RFC-like parts: files, checksums, list.
class Wheel : public testing::Test {
 protected:
  fs::path make(const std::string& name, const std::string& fault = "") const {
    const char* script = R"(
import base64, hashlib, sys, zipfile
name, fault = sys.argv[1:]
files = {"httpstan/stanc": b"#!/bin/sh\necho fake\n", "httpstan/include/stan/model/model_header.hpp": b"struct stan_was_here {};\n",
         "httpstan/include/stan/version.hpp": b"#define STAN_MAJOR 2\n#define STAN_MINOR 99\n#define STAN_PATCH 1\n",
         "httpstan/lib/libtbb.so.2": b"none"}
if fault == "lacks": del files["httpstan/stanc"]
record = ""
for path, content in files.items():
    sum = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    record += f"{path},sha256={sum},{len(content)}\n"
if fault == "changed": files["httpstan/stanc"] += b"echo evil\n"
info = "httpstan-9.9.0.dist-info" if fault != "other" else "numpy-9.9.0.dist-info"
with zipfile.ZipFile(name, "w") as wheel:
    for path, content in files.items(): wheel.writestr(path, content)
    wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
)";
    const fs::path wheel = folder_.path() / name;
    const Finished made = run_program({"python3", "-c", script, wheel.string(), fault});
    EXPECT_EQ(made.status, 0) << made.output;
    return wheel;
  }
  std::string refused(const fs::path& wheel) const {
    return refusal([&] { install_stan(wheel, options_); });
  }
  // What is in the cache, but for locks.
  std::vector<std::string> cached() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(options_.cache))
      if (entry.path().extension() != ".lock") names.push_back(entry.path().filename().string());
    return names;
  }

  test::TemporaryFolder folder_;
  const StanOptions options_{folder_.path() / "cache", {}, {}, {}};
  const std::string name_ = "httpstan-9.9.0-cp312-cp312-any.whl";
};

TEST_F(Wheel, IsInstalledOnceAndFound) {
  const fs::path wheel = make(name_), installed = install_stan(wheel, options_);
  EXPECT_EQ(installed, options_.cache / "httpstan-9.9.0");
  EXPECT_EQ(run_program({(installed / "httpstan/stanc").string()}).output, "fake\n");
  EXPECT_TRUE(stan_in_use(options_).starts_with("Stan 2.99.1 (httpstan 9.9.0) in " + installed.string() +
                                                "; the compiler is "));
  int headers = 0;
  for (const std::string& name : cached()) headers += name.ends_with(".hpp.gch");
  EXPECT_EQ(headers, 1);
  const auto before = fs::last_write_time(installed / "httpstan/stanc");
  EXPECT_EQ(install_stan(wheel, options_), installed);
  EXPECT_EQ(fs::last_write_time(installed / "httpstan/stanc"), before);
}

// A clang++ that makes empty files, or fails: it is used where CXX names no other and it works.
TEST_F(Wheel, ModelsAreCompiledByClangWhereItIsInstalledAndWorks) {
  const fs::path tools = folder_.path() / "bin";
  const auto install_clang = [&](const std::string& does) {
    fs::create_directories(tools);
    write_file(tools / "clang++",
               "#!/bin/sh\n[ \"$1\" = --version ] && echo clang \"" + does + "\" && exit\n" + does + "\n");
    fs::permissions(tools / "clang++", fs::perms::owner_all);
  };
  const std::string path = std::getenv("PATH");
  const char* named = std::getenv("CXX");
  const std::string compiler = named ? named : "";
  ::setenv("PATH", (tools.string() + ":" + path).c_str(), 1);
  ::unsetenv("CXX");
  install_clang("for last; do :; done; : > \"$last\"; echo \"$@\" >> " + (folder_.path() / "calls").string());
  install_stan(make(name_), options_);
  EXPECT_TRUE(stan_in_use(options_).ends_with("; the compiler is clang++"));
  EXPECT_TRUE(says(read_file(folder_.path() / "calls"), "-fpch-instantiate-templates"));
  ::setenv("CXX", "g++", 1);
  EXPECT_TRUE(stan_in_use(options_).ends_with("; the compiler is g++"));
  ::unsetenv("CXX");
  install_clang("exit 1");
  EXPECT_TRUE(stan_in_use(options_).ends_with("; the compiler is g++"));
  ::setenv("PATH", path.c_str(), 1);
  if (named) ::setenv("CXX", compiler.c_str(), 1);
}

TEST_F(Wheel, ADamagedOneIsRefusedAndLeavesNothing) {
  EXPECT_TRUE(
      says(refused(make(name_, "changed")), name_ + ": is damaged: the checksum of httpstan/stanc in it is wrong"));
  EXPECT_TRUE(says(refused(make(name_, "lacks")), "holds no httpstan/stanc"));
  EXPECT_TRUE(says(refused(make(name_, "other")), "is not a wheel of httpstan"));
  write_file(folder_.path() / name_, "PK, but no archive");
  EXPECT_TRUE(says(refused(folder_.path() / name_), name_ + ": cannot be unpacked; expected a wheel of httpstan"));
  const std::string tested = "httpstan-4.17.0-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl";
  EXPECT_TRUE(says(refused(make(tested)), tested + ": is damaged or not the published file: its SHA-256 is "));
  EXPECT_TRUE(cached().empty()) << cached().front();
}

TEST_F(Wheel, ANameThatIsNoneIsRefused) {
  EXPECT_TRUE(says(refused(folder_.path() / "none.whl"), "none.whl: there is no such file"));
  EXPECT_TRUE(
      says(refused(make("numpy-1.0-py3-none-any.whl")), "expected a wheel of httpstan, httpstan-VERSION-….whl"));
  EXPECT_TRUE(says(refused(make("httpstan-9.8.0-cp312-cp312-any.whl")), "holds version 9.9.0; expected 9.8.0"));
}

TEST_F(Wheel, WithoutANetworkTheWayOutIsSaid) {
  ::setenv("PIP_NO_INDEX", "1", 1);
  ::setenv("PIP_FIND_LINKS", folder_.path().c_str(), 1);
  const std::string message = refused({});
  ::unsetenv("PIP_NO_INDEX");
  ::unsetenv("PIP_FIND_LINKS");
  EXPECT_TRUE(says(message,
                   "pip cannot download httpstan==4.17.0; where there is no network, give the wheel: hone stan "
                   "install --wheel FILE. pip says:"))
      << message;
  EXPECT_TRUE(cached().empty());
}

TEST(StanData, AreReadWithTuples) {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    write_file(folder.path() / "data.json", text);
    return *read_stan_data(folder.path() / "data.json");
  };
  const auto data =
      read(R"({"t": {"1": 2, "2": [[1, 2], [3, 4]]}, "a": [{"1": 1, "2": [5, 6.5]}, {"1": 2, "2": [7, 8]}], "e": []})");
  EXPECT_EQ(data.at("t.1").values, std::vector<double>{2});
  EXPECT_EQ(data.at("t.2").dims, (std::vector<std::size_t>{2, 2}));
  EXPECT_EQ(data.at("a.1").values, (std::vector<double>{1, 2}));
  EXPECT_TRUE(data.at("a.1").integers);
  EXPECT_EQ(data.at("a.2").values, (std::vector<double>{5, 6.5, 7, 8}));
  EXPECT_EQ(data.at("a.2").dims, (std::vector<std::size_t>{2, 2}));
  EXPECT_FALSE(data.at("a.2").integers);
  EXPECT_EQ(hone_data::find(data, "e.2"), &data.at("e"));
  EXPECT_EQ(hone_data::find(data, "t.3"), nullptr);
  EXPECT_TRUE(
      says(refusal([&] { read(R"({"a": [{"1": 1}, {"1": [2]}]})"); }), "key 'a': the tuples of the array do not"));
  EXPECT_TRUE(says(refusal([&] { read(R"({"a": {"1": 1}, "a": 2})"); }), "key 'a': the key stands twice"));
  EXPECT_TRUE(says(refusal([&] { read(R"({"a": {}})"); }), "key 'a'"));
  EXPECT_TRUE(says(refusal([&] { read(" "); }), "data.json: is empty"));
  const auto repeated = [](const std::string& part) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += part;
    return text;
  };
  EXPECT_TRUE(says(refusal([&] { read("{\"a\": " + repeated("{\"1\": ")); }), "key 'a': tuples are nested too deeply"));
  EXPECT_TRUE(says(refusal([&] { read("{\"a\": " + repeated("[") + "{"); }), "key 'a': tuples are nested too deeply"));
  EXPECT_TRUE(says(refusal([&] { read("{\"a\": " + repeated("[")); }), "key 'a': arrays are nested too deeply"));
}

TEST(StanData, AreComparedWithATranslation) {
  const std::string code = R"(
      context__.validate_dims("data initialization", "N", "int",
        std::vector<size_t>{});
      context__.validate_dims("data initialization", "x", "double",
        std::vector<size_t>{static_cast<size_t>(N), static_cast<size_t>(2)});
      context__.validate_dims("data initialization", "w", "int", std::vector<size_t>{static_cast<size_t>((N + 1))});
      context__.validate_dims("parameter initialization", "a", "double", std::vector<size_t>{});
)";
  const auto check = [&](const std::string& text) {
    return refusal([&] { check_stan_data(code, hone_data::JsonReader(text).read(), "data.json"); });
  };
  EXPECT_EQ(check(R"({"N": 1, "x": [[1, 2.5]], "w": [3, 4], "more": 1})"), "nothing was refused");
  EXPECT_EQ(check(R"({"N": 1, "x": [[1, 2.5]], "w": [3, 4, 5]})"), "nothing was refused") << "the model will refuse it";
  EXPECT_EQ(check(R"({"N": 0, "x": [], "w": [3]})"), "nothing was refused");
  EXPECT_TRUE(says(check(R"({"x": [], "w": []})"), "data.json: variable 'N' of the data block is not in the data"));
  EXPECT_TRUE(says(check(R"({"N": [1], "x": [], "w": []})"),
                   "'N' of the data block is declared as a single number, but the data "
                   "hold an array of size (1)"));
  EXPECT_TRUE(says(check(R"({"N": 1.5, "x": [], "w": []})"), "'N' of the data block is declared as int"));
  EXPECT_TRUE(
      says(check(R"({"N": 2, "x": [[1, 2]], "w": [1, 2, 3]})"),
           "'x' of the data block is declared as an array of size (N, 2), but the data hold an array of size (1, 2)"));
  EXPECT_TRUE(says(check(R"({"N": 1, "x": [[1, 2]], "w": 4})"),
                   "'w' of the data block is declared as an array of size ((N + 1))"));
}

// As stanc 2.39 writes them, also of tuples. A variable of transformed data is not in the data, whatever else is.
TEST(StanData, AreHeldAgainstTheirBounds) {
  const std::string code = R"(
      context__.validate_dims("data initialization", "N", "int", std::vector<size_t>{});
      stan::math::check_greater_or_equal(function__, "N", N, 1);
      context__.validate_dims("data initialization", "s0", "double", std::vector<size_t>{});
      stan::math::check_greater_or_equal(function__, "s0", s0, 0);
      context__.validate_dims("data initialization", "a", "double", std::vector<size_t>{static_cast<size_t>(N),
        static_cast<size_t>(2)});
      stan::math::check_greater_or_equal(function__, "a", a, -(1.5));
      stan::math::check_less_or_equal(function__, "a", a, s0);
      context__.validate_dims("data initialization", "t.2", "double", std::vector<size_t>{});
      stan::math::check_greater_or_equal(function__, "t.2",
        std::get<1>(t), 1e3);
      context__.validate_dims("data initialization", "b", "double", std::vector<size_t>{});
      stan::math::check_greater_or_equal(function__, "b", b, -(s0));
      stan::math::check_less_or_equal(function__, "b", b, (2 * s0));
      stan::math::check_greater_or_equal(function__, "transformed", transformed, 5);
)";
  for (const std::string& text : {code, declarations_in(code)}) {  // as translated, and as kept beside a library
    const auto check = [&](const std::string& n, const std::string& s0, const std::string& a, const std::string& t,
                           const std::string& b) {
      const std::string json = "{\"N\": " + n + ", \"s0\": " + s0 + ", \"a\": " + a +
                               ", \"t\": {\"1\": 0, \"2\": " + t + "}, \"b\": " + b + ", \"transformed\": 0}";
      return refusal([&] { check_stan_data(text, hone_data::JsonReader(json).read(), "data.json"); });
    };
    const std::string good = "[[-1.5, 3], [0, 1]]";
    EXPECT_EQ(check("2", "3", good, "1000", "-3"), "nothing was refused");
    EXPECT_EQ(check("2", "3", good, "1000", "99"), "nothing was refused") << "the model will refuse it";
    EXPECT_EQ(check("0", "3", "[]", "1000", "0"),
              "data.json: variable 'N' of the data block is 0; expected at least 1");
    EXPECT_EQ(check("2", "-1", good, "1000", "0"),
              "data.json: variable 's0' of the data block is -1; expected at least 0");
    EXPECT_EQ(check("2", "3", "[[-1.5, 3], [-1.6, 4]]", "1000", "0"),
              "data.json: variable 'a' of the data block is -1.6 at [2, 1]; expected at least -1.5");
    EXPECT_EQ(check("2", "3", "[[-1.5, 3.25], [0, 1]]", "1000", "0"),
              "data.json: variable 'a' of the data block is 3.25 at [1, 2]; expected at most s0, which is 3");
    EXPECT_EQ(check("2", "3", good, "1", "0"),
              "data.json: variable 't.2' of the data block is 1; expected at least 1000");
    EXPECT_EQ(check("2", "3", good, "1000", "-4"),
              "data.json: variable 'b' of the data block is -4; expected at least -(s0), which is -3");
    EXPECT_EQ(check("2", "NaN", good, "1000", "0"),
              "data.json: variable 's0' of the data block is nan; expected at least 0");
  }
}

}  // namespace
}  // namespace hone
