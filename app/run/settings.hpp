#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hone/base/error.hpp"

namespace hone {

// Which numbers a setting allows.
struct Bounds {
  double low;
  double high;
  bool open_low = false;  // low itself is not allowed
  bool open_high = false;

  static Bounds at_least(double low);
  static Bounds positive();
  static Bounds between(double low, double high) { return {low, high}; }
  static Bounds inside(double low, double high) {
    return {.low = low, .high = high, .open_low = true, .open_high = true};
  }
};

// The names of an enumeration's values.
template <class E>
using Choices = std::vector<std::pair<std::string, E>>;

// A table of settings: each entry ties a key to a variable, with its help and the allowed values. The same table reads
// TOML files and command-line flags, writes the resolved configuration, and makes the text of --help. Keys are
// snake_case, "table.key" for a key of a table; the flag of draws_per_iteration is --draws-per-iteration.
class Settings {
 public:
  struct Entry {
    std::string key;
    std::string help;
    std::string takes;         // "an integer, at least 1", "one of kl, vcd"
    std::string default_text;  // the default, in words
    enum class Kind { integer, real, text, list } kind;
    std::string flag_takes = "N";                  // what follows the flag in --help: "N", "NAME"
    std::function<void(const std::string&)> read;  // throws std::invalid_argument
    std::function<std::string()> print;            // as TOML; empty if the value is not set

    std::string flag() const;
  };

  // The referenced variable must outlive the settings. For an optional variable the program derives the default; the
  // text says from what.
  void add(std::string key, int& value, Bounds bounds, std::string help);
  void add(std::string key, std::uint32_t& value, Bounds bounds, std::string help);
  void add(std::string key, std::uint64_t& value, Bounds bounds, std::string help);
  void add(std::string key, double& value, Bounds bounds, std::string help);
  void add(std::string key, std::optional<int>& value, Bounds bounds, std::string help, std::string derived);
  void add(std::string key, std::optional<std::uint32_t>& value, Bounds bounds, std::string help, std::string derived);
  void add(std::string key, std::optional<double>& value, Bounds bounds, std::string help, std::string derived);

  // Any non-empty text; `takes` describes it, `flag_takes` in one word.
  void add(std::string key, std::string& value, std::string takes, std::string help, std::string flag_takes = "NAME");

  // A list of integers (may be empty): an array in TOML, "200,200" in a flag.
  void add(std::string key, std::vector<int>& value, Bounds bounds, std::string help);
  void add(std::string key, std::optional<std::vector<int>>& value, Bounds bounds, std::string help,
           std::string derived);

  template <class E>
  void add(std::string key, E& value, Choices<E> choices, std::string help) {
    std::vector<std::string> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    const auto index_of = [choices](E wanted) {
      std::size_t i = 0;
      while (choices[i].second != wanted) ++i;
      return i;
    };
    add_choice(
        std::move(key), std::move(names), [&value, choices](std::size_t i) { value = choices[i].second; },
        [&value, index_of] { return index_of(value); }, std::move(help));
  }

  void add(Entry entry) { entries_.push_back(std::move(entry)); }  // from another table

  const std::vector<Entry>& entries() const { return entries_; }

  // A key's value as a flag would give it, without quotes.
  std::string text(std::string_view key) const;

  // Sets one value from a text; `origin` ("--steps", "file.toml:3") begins the message of an InputError.
  void set(std::string_view key, const std::string& text, const std::string& origin);

  // Where a key was set, with the key: "file.toml:3: steps", "--steps"; only the key if it was not set.
  std::string origin(const std::string& key) const;

  // The error of a key, preceded by where it was set: "file.toml:3: steps: …", "--steps: …".
  InputError located(const KeyError& error) const;

  // Reads a TOML file. An unknown key, a wrong type or an impossible value is an InputError that names file, line, key
  // and the allowed values.
  void read_file(const std::filesystem::path& path);
  void read_text(const std::string& text, const std::string& origin);  // the same for the content of a file

  // The whole configuration as TOML, each key with its help as a comment.
  std::string to_toml() const;

 private:
  template <class T>
  void add_number(std::string key, T& value, Bounds bounds, std::string help, std::string derived);
  template <class T>
  void add_list(std::string key, T& value, Bounds bounds, std::string help, std::string derived);
  void add_choice(std::string key, std::vector<std::string> names, std::function<void(std::size_t)> choose,
                  std::function<std::size_t()> chosen, std::string help);
  const Entry& find(std::string_view key, const std::string& origin) const;

  std::vector<Entry> entries_;
  std::map<std::string, std::string> origins_;  // of the keys that have been set
};

}  // namespace hone
