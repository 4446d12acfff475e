#include "app/run/fit_groups.hpp"

#include <algorithm>
#include <regex>
#include <set>

#include "app/run/draws.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

bool has(std::span<const std::string> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// X of X_rep, …; empty: no prediction.
std::string predicted_by(const std::string& variable, std::span<const std::string> data) {
  for (const std::string ending : {"_rep", "_pred", "_sim", "_tilde", "_hat"}) {
    if (!variable.ends_with(ending) || variable.size() == ending.size()) continue;
    const std::string what = variable.substr(0, variable.size() - ending.size());
    return (ending != "_hat" && ending != "_tilde") || has(data, what) ? what : "";
  }
  return "";
}

// A Stan program without its comments.
std::string without_comments(const std::string& program) {
  std::string text;
  for (std::size_t at = 0; at < program.size();) {
    const bool line = program.compare(at, 2, "//") == 0 || program[at] == '#',
               block = program.compare(at, 2, "/*") == 0;
    if (!line && !block) {
      text += program[at++];
      continue;
    }
    const std::size_t end = line ? program.find('\n', at) : program.find("*/", at + 2);
    if (end == program.npos) break;
    at = line ? end : end + 2;
  }
  return text;
}

// A Stan program without its comments; empty if the model is none or cannot be read.
std::string program_of(const std::filesystem::path& model) {
  if (model.extension() != ".stan") return {};
  try {
    return without_comments(read_file(model));
  } catch (const Error&) {
    return {};  // it was compiled before, and is gone
  }
}

// Names that a program gives a distribution.
std::set<std::string> modelled_in(const std::string& program) {
  std::set<std::string> names;
  static const std::regex statement("([A-Za-z]\\w*)\\s*(?:\\[[^\\]]*\\]\\s*)?~"),
      call("_lu?p[dm]f\\s*\\(\\s*([A-Za-z]\\w*)");
  for (const std::regex* pattern : {&statement, &call})
    for (std::sregex_iterator match(program.begin(), program.end(), *pattern), none; match != none; ++match)
      names.insert((*match)[1]);
  return names;
}

// Names that a program declares as int, or as an array of them: "int<lower=0> a, b;", "array[N] int y;", "int y[N];".
std::set<std::string> integers_in(const std::string& program) {
  std::set<std::string> names;
  static const std::regex declaration(
      "\\bint\\b\\s*(?:<[^>]*>)?\\s*([A-Za-z]\\w*(?:\\s*,\\s*[A-Za-z]\\w*)*)\\s*[;=\\[]"),
      name("[A-Za-z]\\w*");
  for (std::sregex_iterator match(program.begin(), program.end(), declaration), none; match != none; ++match) {
    const std::string list = (*match)[1];
    for (std::sregex_iterator own(list.begin(), list.end(), name); own != none; ++own) names.insert(own->str());
  }
  return names;
}

}  // namespace

bool is_log_likelihood(const std::string& variable) {
  for (const std::string word : {"log_lik", "loglik", "log_likelihood"})
    if (variable == word || variable.starts_with(word + "_") || variable.ends_with("_" + word)) return true;
  return false;
}

FitGroups fit_groups(std::span<const std::string> names, std::span<const std::string> data,
                     const std::filesystem::path& model) {
  FitGroups groups;
  const std::string program = program_of(model);
  const std::set<std::string> integers = integers_in(program);
  std::set<std::string> observed = modelled_in(program);
  observed.insert("y");
  for (const NamedVariable& variable : group_names(names)) {
    const std::string what = predicted_by(variable.name, data);
    if (integers.contains(variable.name)) groups.integers.push_back(variable.name);
    if (is_log_likelihood(variable.name)) {
      groups.log_likelihood.push_back(variable.name);
    } else if (!what.empty()) {
      groups.posterior_predictive.push_back(variable.name);
      observed.insert(what);
    }
  }
  for (const std::string& name : data) {
    if (observed.contains(name)) groups.observed_data.push_back(name);
    if (integers.contains(name)) groups.integers.push_back(name);
  }
  return groups;
}

}  // namespace hone
