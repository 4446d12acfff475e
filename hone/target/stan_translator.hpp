#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/target/stan_source.hpp"

namespace hone {

// Stan as installed by R's packages rstan, StanHeaders and RcppEigen.
struct StanTools {
  // The command that installs them and the compiler.
  static constexpr std::string_view install = "apt-get install --no-install-recommends r-cran-rstan g++";

  std::filesystem::path library;  // the folder of R packages that contains rstan
  std::vector<std::filesystem::path> includes;
  std::filesystem::path archive;  // libStanHeaders.a: solvers of differential equations
  std::string versions;           // differs if any of the packages differs
};

// Searches R_LIBS and R_LIBS_SITE, then the places where Debian and R put packages. Throws InputError with the command
// that installs what is missing.
StanTools find_stan_tools();

// Translates `text`, a program for Stan 2.21 with the same lines as `source`, to C++. R runs in the folder `work`.
// Throws InputError with the translator's message, file and line, or with the command that installs R.
std::string translate_stan(const StanTools& tools, const std::filesystem::path& program, const StanSource& source,
                           const std::string& text, const std::filesystem::path& work);

// The error for a translator's message about a program, with the first line that it names. `way_out` says what to do if
// the program is written for a newer Stan.
InputError translation_failure(const std::filesystem::path& program, const StanSource& source,
                               const std::string& translator, const std::string& output, const std::string& way_out);

// The program's file name without its extension, as a C++ identifier ("my-model.stan": my_model).
std::string c_name(const std::filesystem::path& program);

// The text of hone/target/stan/wrapper.cpp, which is compiled together with the result of translate_stan.
std::string_view stan_wrapper();

}  // namespace hone
