#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/target/stan.hpp"
#include "hone/target/stan_source.hpp"

namespace hone {

// An installation of Stan: what translates a program, and what its translation is compiled and linked with.
struct StanTools {
  enum class Kind { httpstan, rstan };

  Kind kind = Kind::rstan;
  std::string name;                  // "Stan 2.39.0 (httpstan 4.17.0)"
  std::filesystem::path translator;  // the program stanc, or the folder of R packages that holds rstan
  std::vector<std::string> compile;  // the compiler's flags
  std::vector<std::string> link;     // what is linked after the objects
  std::string versions;              // differs if anything of it differs
  std::string install;               // the command that installs what it needs beside it
};

// httpstan (install_stan) in the cache, if it is there.
std::optional<StanTools> find_httpstan(const StanOptions& options);

// Stan in R's packages rstan, StanHeaders and RcppEigen. Searches R_LIBS and R_LIBS_SITE, then the places where Debian
// and R put packages. Throws InputError with the command that installs Stan.
StanTools find_rstan();

// What is to be translated: the program's file, its text with includes, and the same lines as the translator reads
// them.
struct Translation {
  const std::filesystem::path& program;
  const StanSource& source;
  std::string text;
};

// Translates a program to C++ in the folder `work`. Throws InputError with the translator's message, file and line, or
// with the command that installs R; Stopped.
std::string translate_stan(const StanTools& tools, const Translation& translation, const std::filesystem::path& work,
                           const StanOptions& options);

// The error for a translator's message about a program, with the first line that it names. `way_out` says what to do if
// the program is written for a newer Stan.
InputError translation_failure(const std::filesystem::path& program, const StanSource& source,
                               const std::string& translator, const std::string& output, const std::string& way_out);

// The program's file name without its extension, as a C++ identifier ("my-model.stan": my_model).
std::string c_name(const std::filesystem::path& program);

// The texts of hone/target/stan/wrapper.cpp, which is compiled together with the result of translate_stan, and of the
// headers that it includes.
std::string_view stan_wrapper();
std::string_view stan_json();
std::string_view stan_model_base();

}  // namespace hone
