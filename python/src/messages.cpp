#include "python/src/messages.hpp"

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>
#include <utility>

namespace hone::python {
namespace {

void replace_words(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"continue it with --resume, or choose another folder with --out",
       "continue it with warm_start=True, or choose another folder"},
      {" (--data FILE.json)", " (data=…)"},
      {"hone stan install --wheel FILE", "hone.install_stan(wheel=FILE)"},
      {"hone stan install", "hone.install_stan()"},
      {"validation.data", "X_validation"},
      {"test.data", "X_test"},
      {"data: <memory> (<memory>, not binarized): ", "X: "},
      {"'<memory>'", "X"},
      {"<memory>", "X"},
  };
  for (const auto& [from, to] : words)
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
}

// A flag begins a word, unlike the hyphens in the name of a file.
std::string without_flags(std::string line) {
  static const std::regex value("(^|[^\\w./-])--([a-z][a-z-]*) (?=[0-9])"), flag("(^|[^\\w./-])--([a-z][a-z-]*)");
  for (const auto& [pattern, after] : {std::pair{&value, "="}, {&flag, ""}})
    for (std::smatch found; std::regex_search(line, found, *pattern);) {
      std::string name = found[2];
      std::ranges::replace(name, '-', '_');
      line = found.prefix().str() + found[1].str() + name + after + found.suffix().str();
    }
  return line;
}

// Whether a line holds a command to paste.
bool has_command(std::string_view line) {
  constexpr std::array commands = {"apt-get ", "pip install ", "pip download "};
  return std::ranges::any_of(commands, [&](const char* name) { return line.find(name) != std::string_view::npos; });
}

}  // namespace

std::string in_python(std::string text) {
  const std::size_t own_end = std::min(text.find("pip says"), text.size());
  const std::string told = text.substr(own_end);
  text.resize(own_end);
  replace_words(text);
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    result += has_command(line) ? line : without_flags(line);
    at = end;
  }
  return result + told;
}

}  // namespace hone::python
