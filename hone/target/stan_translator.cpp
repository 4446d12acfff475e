#include "hone/target/stan_translator.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <system_error>

#include "hone/base/file.hpp"
#include "hone/base/format.hpp"
#include "hone/base/process.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view install_rstan = "apt-get install --no-install-recommends r-cran-rstan g++";

std::vector<fs::path> library_folders() {
  std::vector<fs::path> folders;
  for (const char* name : {"R_LIBS", "R_LIBS_SITE"}) {
    const std::string value = environment(name);
    std::string_view list = value;
    while (!list.empty()) {
      const std::size_t end = std::min(list.find(':'), list.size());
      if (end > 0) folders.emplace_back(list.substr(0, end));
      list.remove_prefix(std::min(end + 1, list.size()));
    }
  }
  for (const char* folder : {"/usr/local/lib/R/site-library", "/usr/lib/R/site-library", "/usr/lib/R/library"})
    folders.emplace_back(folder);
  return folders;
}

fs::path find_package(const std::string& name) {
  std::error_code ignored;
  for (const fs::path& folder : library_folders())
    if (fs::is_regular_file(folder / name / "DESCRIPTION", ignored)) return folder / name;
  throw InputError(
      detail::format("Stan is not installed; to install it:\n  hone stan install\n"
                     "or {} (R's package {} is not found), or set BRIDGESTAN to a folder of BridgeStan, or give a "
                     "compiled model (.so)",
                     install_rstan, name));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Patches two things in the translation of Stan 2.21: each thread gets its own line number for errors, and data of size
// zero are accepted whatever their number of dimensions ([] for a matrix without rows).
std::string mended(std::string code) {
  replace_all(code, "static int current_statement_begin__;", "static thread_local int current_statement_begin__;");
  replace_all(code, "context__.validate_dims(", "hone_check_dims(context__, ");
  const std::string_view header = "#include <stan/model/model_header.hpp>";
  replace_all(code, header, std::string(header) + R"(
static void hone_check_dims(const stan::io::var_context& data, const std::string& stage, const std::string& name,
                            const std::string& type, const std::vector<size_t>& declared) {
  size_t wanted = 1, found = 1;
  for (size_t i = 0; i < declared.size(); ++i) wanted *= declared[i];
  const std::vector<size_t> dims = data.dims_r(name);
  for (size_t i = 0; i < dims.size(); ++i) found *= dims[i];
  if (data.contains_r(name) && wanted == 0 && found == 0) return;
  data.validate_dims(stage, name, type, declared);
})");
  return code;
}

// Removes R's own output around the translator's message.
std::string without_noise(const std::string& output) {
  std::string text;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    const std::string_view line = std::string_view(output).substr(at, end - at);
    const bool noise = line.empty() || line.starts_with("code for methods in class") || line.starts_with("Calls:") ||
                       line.starts_with("Execution halted") || line.starts_with("Error in rstan::stanc") ||
                       line.starts_with("  failed to parse") || line.starts_with("make: ") || line.starts_with("--- ");
    if (!noise) text.append(line).push_back('\n');
    at = end + 1;
  }
  return text;
}

// The first number after the word "line".
std::optional<int> first_line(const std::string& text) {
  constexpr std::string_view word = "line ";
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
    at += word.size();
    int number = 0;
    if (std::from_chars(text.data() + at, text.data() + text.size(), number).ec == std::errc()) return number;
  }
  return std::nullopt;
}

}  // namespace

std::string c_name(const fs::path& program) {
  std::string name = program.stem().string();
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter)) || static_cast<unsigned char>(letter) > 127) letter = '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) ? "m" + name : name;
}

StanTools find_rstan() {
  StanTools tools;
  tools.kind = StanTools::Kind::rstan;
  tools.name = "Stan 2.21 (R's package rstan)";
  tools.install = install_rstan;
  tools.compile = {"-std=c++14"};
  for (const char* name : {"rstan", "StanHeaders", "RcppEigen"}) {
    const fs::path package = find_package(name);
    tools.versions += package.string() + "\n" + read_file(package / "DESCRIPTION");
    if (std::string_view(name) == "StanHeaders") {
      tools.compile.push_back("-I" + (package / "include" / "src").string());
      tools.link.push_back((package / "lib" / "libStanHeaders.a").string());  // solvers of differential equations
    }
    if (std::string_view(name) == "rstan")
      tools.translator = package.parent_path();
    else
      tools.compile.push_back("-I" + (package / "include").string());
  }
  return tools;
}

InputError translation_failure(const fs::path& program, const StanSource& source, const std::string& translator,
                               const std::string& output, const std::string& way_out) {
  const std::string said = without_noise(output);
  std::string place = program.string();
  if (const auto line = first_line(said)) {
    const StanSource::Origin& origin = source.origin(*line);
    place = detail::format("{}:{}", origin.file.string(), origin.line);
  }
  return InputError(
      detail::format("{}: the program cannot be translated by {}:\n{}If the program is right for a newer Stan, {}",
                     place, translator, said, way_out));
}

namespace {

std::string translate_by_r(const StanTools& tools, const Translation& translation, const fs::path& work,
                           const StanOptions& options) {
  write_file(work / "program.stan", translation.text);
  // Only R's own libraries and the one found: a user's library may contain another Stan.
  const std::string script = detail::format(
      ".libPaths(commandArgs(TRUE)[1])\n"
      "code <- rstan::stanc('program.stan', model_name = '{}', obfuscate_model_name = FALSE)$cppcode\n"
      "writeLines(code, 'translated.cpp')\n",
      c_name(translation.program));
  write_file(work / "translate.R", script);
  const Finished finished = run_program(
      {"Rscript", "--no-init-file", "--no-save", "translate.R", tools.translator.string()}, work, options.stop);
  if (finished.status == program_not_found)
    throw InputError(
        detail::format("Stan programs are translated by R, whose program Rscript is not found; to install "
                       "it:\n  {}",
                       tools.install));
  if (finished.status != 0)
    throw translation_failure(translation.program, translation.source, tools.name, finished.output,
                              "install it by 'hone stan install', or give a library of it built by a newer BridgeStan "
                              "(model.so) instead, or set BRIDGESTAN to its folder.");
  return mended(read_file(work / "translated.cpp"));
}

std::string translate_by_stanc(const StanTools& tools, const Translation& translation, const fs::path& work,
                               const StanOptions& options) {
  write_file(work / "program.stan", translation.text);
  const std::string name = c_name(translation.program);
  const Finished finished =
      run_program({tools.translator.string(), "--name=" + name + "_model", "--filename-in-msg=" + name + ".stan",
                   "--color=never", "-o", "translated.cpp", "program.stan"},
                  work, options.stop);
  if (finished.status != 0)
    throw translation_failure(translation.program, translation.source, tools.name, finished.output,
                              "set BRIDGESTAN to the folder of a newer BridgeStan, or give a library built by it "
                              "(model.so).");
  return read_file(work / "translated.cpp");
}

}  // namespace

std::string translate_stan(const StanTools& tools, const Translation& translation, const fs::path& work,
                           const StanOptions& options) {
  return tools.kind == StanTools::Kind::httpstan ? translate_by_stanc(tools, translation, work, options)
                                                 : translate_by_r(tools, translation, work, options);
}

}  // namespace hone
