#include "app/run/settings.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <type_traits>

#include "app/run/json.hpp"
#include "app/run/toml.hpp"
#include "hone/base/file.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/spelling.hpp"

namespace hone {
namespace {

template <class T>
struct Unwrap {
  using type = T;
};
template <class T>
struct Unwrap<std::optional<T>> {
  using type = T;
};
template <class T>
constexpr bool is_optional = !std::is_same_v<T, typename Unwrap<T>::type>;

std::string integer_text(double bound) { return fmt::format("{:.0f}", bound); }  // never 1e+18

std::string describe(const Bounds& bounds, bool integer) {
  const std::string kind = integer ? "an integer" : "a number";
  const auto text = [&](double bound) { return integer ? integer_text(bound) : fmt::format("{}", bound); };
  const std::string low = text(bounds.low), high = text(bounds.high);
  if (bounds.high == infinity) return kind + (bounds.open_low ? " above " : ", at least ") + low;
  if (bounds.open_low && bounds.open_high) return fmt::format("{} strictly between {} and {}", kind, low, high);
  if (bounds.open_low) return fmt::format("{} above {} and at most {}", kind, low, high);
  if (bounds.open_high) return fmt::format("{} of at least {} and below {}", kind, low, high);
  return fmt::format("{} from {} to {}", kind, low, high);
}

bool allows(const Bounds& bounds, double value) {
  const bool above = bounds.open_low ? value > bounds.low : value >= bounds.low;
  const bool below = bounds.open_high ? value < bounds.high : value <= bounds.high;
  return above && below && !std::isinf(value);
}

template <class T>
T parse(const std::string& text, const Bounds& bounds) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !allows(bounds, static_cast<double>(value)))
    throw std::invalid_argument("");
  return value;
}

template <class T>
std::string print(T value) {
  std::string text = fmt::format("{}", value);
  if (std::is_floating_point_v<T> && text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::vector<int> parse_list(std::string text, const Bounds& bounds) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<int> values;
  if (text.empty()) return values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' ', begin), end);
    values.push_back(parse<int>(text.substr(first, end - first), bounds));
    begin = end + 1;
  }
  return values;
}

std::string print(const std::vector<int>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

// A string as JSON writes it, which TOML reads, too: always one line.
std::string print(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string text_of(const toml::array& array) {
  std::string text;
  for (const toml::node& element : array) {
    const auto* integer = element.as_integer();
    if (!integer) throw std::invalid_argument("");
    text += fmt::format("{}{}", text.empty() ? "" : ",", integer->get());
  }
  return text;
}

// The value of a TOML node as text, if its type fits.
std::string text_of(const toml::node& node, Settings::Entry::Kind kind) {
  using Kind = Settings::Entry::Kind;
  if (const auto* array = node.as_array(); array && kind == Kind::list) return text_of(*array);
  if (const auto* integer = node.as_integer(); integer && (kind == Kind::integer || kind == Kind::real))
    return fmt::format("{}", integer->get());
  if (const auto* real = node.as_floating_point(); real && kind == Kind::real) return fmt::format("{}", real->get());
  if (const auto* text = node.as_string(); text && kind == Kind::text) return text->get();
  throw std::invalid_argument("");
}

std::string shown(const toml::node& node) {
  if (node.is_table()) return "a table";
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

}  // namespace

Bounds Bounds::at_least(double low) { return {low, infinity}; }
Bounds Bounds::positive() { return {0, infinity, true}; }

std::string Settings::Entry::flag() const {
  std::string name = "--" + key;
  for (char& c : name)
    if (c == '_') c = '-';
  return name;
}

template <class T>
void Settings::add_number(std::string key, T& value, Bounds bounds, std::string help, std::string derived) {
  using Number = typename Unwrap<T>::type;
  constexpr bool integer = std::is_integral_v<Number>;
  Entry entry;
  entry.key = std::move(key);
  entry.help = std::move(help);
  entry.takes = describe(bounds, integer);
  entry.kind = integer ? Entry::Kind::integer : Entry::Kind::real;
  entry.read = [&value, bounds](const std::string& text) { value = parse<Number>(text, bounds); };
  if constexpr (is_optional<T>) {
    entry.print = [&value] { return value ? print(*value) : std::string(); };
    entry.default_text = std::move(derived);
  } else {
    entry.print = [&value] { return print(value); };
    entry.default_text = fmt::format("{}", value);
  }
  entries_.push_back(std::move(entry));
}

void Settings::add(std::string key, int& value, Bounds bounds, std::string help) {
  add_number(std::move(key), value, bounds, std::move(help), "");
}
void Settings::add(std::string key, std::uint32_t& value, Bounds bounds, std::string help) {
  add_number(std::move(key), value, bounds, std::move(help), "");
}
void Settings::add(std::string key, std::uint64_t& value, Bounds bounds, std::string help) {
  add_number(std::move(key), value, bounds, std::move(help), "");
}
void Settings::add(std::string key, double& value, Bounds bounds, std::string help) {
  add_number(std::move(key), value, bounds, std::move(help), "");
}
void Settings::add(std::string key, std::optional<int>& value, Bounds bounds, std::string help, std::string derived) {
  add_number(std::move(key), value, bounds, std::move(help), std::move(derived));
}
void Settings::add(std::string key, std::optional<std::uint32_t>& value, Bounds bounds, std::string help,
                   std::string derived) {
  add_number(std::move(key), value, bounds, std::move(help), std::move(derived));
}
void Settings::add(std::string key, std::optional<double>& value, Bounds bounds, std::string help,
                   std::string derived) {
  add_number(std::move(key), value, bounds, std::move(help), std::move(derived));
}

template <class T>
void Settings::add_list(std::string key, T& value, Bounds bounds, std::string help, std::string derived) {
  Entry entry;
  entry.key = std::move(key);
  entry.help = std::move(help);
  entry.takes = fmt::format("a list (may be empty) of integers from {} to {}", integer_text(bounds.low),
                            integer_text(bounds.high));
  entry.kind = Entry::Kind::list;
  entry.read = [&value, bounds](const std::string& text) { value = parse_list(text, bounds); };
  if constexpr (is_optional<T>) {
    entry.print = [&value] { return value ? print(*value) : std::string(); };
    entry.default_text = std::move(derived);
  } else {
    entry.print = [&value] { return print(value); };
    entry.default_text = print(value);
  }
  entries_.push_back(std::move(entry));
}

void Settings::add(std::string key, std::vector<int>& value, Bounds bounds, std::string help) {
  add_list(std::move(key), value, bounds, std::move(help), "");
}
void Settings::add(std::string key, std::optional<std::vector<int>>& value, Bounds bounds, std::string help,
                   std::string derived) {
  add_list(std::move(key), value, bounds, std::move(help), std::move(derived));
}

void Settings::add(std::string key, std::string& value, std::string takes, std::string help, std::string flag_takes) {
  Entry entry;
  entry.key = std::move(key);
  entry.help = std::move(help);
  entry.takes = std::move(takes);
  entry.kind = Entry::Kind::text;
  entry.flag_takes = std::move(flag_takes);
  entry.default_text = value;
  entry.print = [&value] { return value.empty() ? std::string() : print(value); };
  entry.read = [&value](const std::string& text) {
    if (text.empty()) throw std::invalid_argument("");
    value = text;
  };
  entries_.push_back(std::move(entry));
}

void Settings::add_choice(std::string key, std::vector<std::string> names, std::function<void(std::size_t)> choose,
                          std::function<std::size_t()> chosen, std::string help) {
  Entry entry;
  entry.key = std::move(key);
  entry.help = std::move(help);
  entry.takes = "one of " + join(names);
  entry.kind = Entry::Kind::text;
  entry.flag_takes = "NAME";
  entry.default_text = names[chosen()];
  entry.print = [names, chosen] { return fmt::format("\"{}\"", names[chosen()]); };
  entry.read = [names, choose](const std::string& text) {
    const auto found = std::ranges::find(names, text);
    if (found == names.end()) throw std::invalid_argument(did_you_mean(text, names));
    choose(static_cast<std::size_t>(found - names.begin()));
  };
  entries_.push_back(std::move(entry));
}

const Settings::Entry& Settings::find(std::string_view key, const std::string& origin) const {
  std::vector<std::string> keys;
  for (const Entry& entry : entries_) {
    if (entry.key == key) return entry;
    keys.push_back(entry.key);
  }
  throw InputError(fmt::format("{}: there is no key '{}'{}", origin, key, did_you_mean(key, keys)));
}

std::string Settings::text(std::string_view key) const {
  const Entry& entry = find(key, "settings");
  const std::string value = entry.print();
  return entry.kind == Entry::Kind::text && value.size() >= 2 ? Json::parse(value).get<std::string>() : value;
}

void Settings::set(std::string_view key, const std::string& text, const std::string& origin) {
  const Entry& entry = find(key, origin);
  try {
    entry.read(text);
    origins_[entry.key] = origin;
  } catch (const std::invalid_argument& reason) {
    throw InputError(fmt::format("{}: '{}' is not allowed; expected {}{}", origin, text, entry.takes, reason.what()));
  }
}

std::string Settings::origin(const std::string& key) const {
  const auto found = origins_.find(key);
  return found == origins_.end() ? key : found->second;
}

InputError Settings::located(const KeyError& error) const {
  return InputError(origin(error.key()) + ": " + error.message());
}

void Settings::read_file(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path))
    throw InputError(fmt::format("{}: this is a folder, not a file", path.string()));
  read_text(hone::read_file(path), path.string());
}

void Settings::read_text(const std::string& content, const std::string& name_of_file) {
  toml::table file;
  try {
    file = parse_toml(content, name_of_file);
  } catch (const toml::parse_error& error) {
    const auto line = error.source().begin.line;
    const std::string where = line > 0 ? fmt::format("{}:{}", name_of_file, line) : name_of_file;
    throw InputError(fmt::format("{}: {}", where, error.description()));
  }
  const auto has_keys = [&](const std::string& table) {
    return std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.key.starts_with(table + "."); });
  };
  const std::function<void(const toml::table&, const std::string&)> read = [&](const toml::table& table,
                                                                               const std::string& prefix) {
    for (const auto& [name, node] : table) {
      const std::string key = prefix + std::string(name.str());
      if (const toml::table* inner = node.as_table(); inner && (!inner->empty() || has_keys(key))) {
        read(*inner, key + ".");
        continue;
      }
      const std::string origin = fmt::format("{}:{}: {}", name_of_file, node.source().begin.line, key);
      const Entry& entry = find(key, fmt::format("{}:{}", name_of_file, node.source().begin.line));
      std::string text;
      try {
        text = text_of(node, entry.kind);
      } catch (const std::invalid_argument&) {
        throw InputError(fmt::format("{}: {} is not allowed; expected {}", origin, shown(node), entry.takes));
      }
      set(key, text, origin);
    }
  };
  read(file, "");
}

std::string Settings::to_toml() const {
  std::map<std::string, std::string> tables;  // the keys outside any table, "", come first
  for (const Entry& entry : entries_) {
    const std::string value = entry.print();
    if (value.empty()) continue;
    const auto dot = entry.key.find('.');
    const std::string table = dot == std::string::npos ? "" : entry.key.substr(0, dot);
    const std::string key = dot == std::string::npos ? entry.key : entry.key.substr(dot + 1);
    tables[table] += fmt::format("{} = {}  # {}\n", key, value, entry.help);
  }
  std::string text;
  for (const auto& [table, lines] : tables) text += (table.empty() ? "" : fmt::format("\n[{}]\n", table)) + lines;
  return text;
}

}  // namespace hone
