#include "python/src/messages.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <string_view>
#include <utility>
#include <vector>

#include "app/run/train_config.hpp"

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
      {"data: <memory>, not binarized: ", "X: "},
      {"'<memory>'", "X"},
      {"<memory>", "X"},
  };
  for (const auto& [from, to] : words)
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
}

// The keys of `hone train` that Python spells otherwise: checkpoint.every is checkpoint_every, schedule.warmup is
// warmup.
std::vector<std::pair<std::string, std::string>> keys_with_tables() {
  std::vector<std::pair<std::string, std::string>> keys;
  TrainRunConfig config;
  const Settings settings = train_settings(config);
  for (const Settings::Entry& entry : settings.entries()) {
    const std::size_t dot = entry.key.find('.');
    if (dot == std::string::npos) continue;
    std::string name = entry.key;
    if (name.starts_with("schedule."))
      name.erase(0, dot + 1);
    else
      name[dot] = '_';
    keys.emplace_back(entry.key, name);
  }
  return keys;
}

// A key is a word of its own, no part of a file's name.
void replace_keys(std::string& text) {
  static const std::vector<std::pair<std::string, std::string>> keys = keys_with_tables();
  const auto within = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
  const auto joined = [](char c) { return c == '.' || c == '/'; };
  for (const auto& [from, to] : keys)
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
      const std::size_t end = at + from.size();
      const bool begins = at == 0 || (!within(text[at - 1]) && !joined(text[at - 1]));
      const bool ends =
          end == text.size() ||
          (!within(text[end]) && (!joined(text[end]) || end + 1 == text.size() || !within(text[end + 1])));
      if (begins && ends) text.replace(at, from.size(), to);
      at += begins && ends ? to.size() : from.size();
    }
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
  replace_keys(text);
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
